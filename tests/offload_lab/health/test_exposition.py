"""The metrics: read back by Prometheus's own parser, escaped, and served on this machine only."""

import math
import re
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.health import Figures, Monitor
from offload_lab.health.exposition import CONTENT_TYPE, text

parser = pytest.importorskip("prometheus_client.parser")

SAMPLE = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\} \S+')


def samples(rendered):
    families = list(parser.text_string_to_metric_families(rendered))
    assert len({family.name for family in families}) == len(families)
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


@given(
    run=st.text() | st.text('\\"\n{},=a'),
    loss=st.floats(allow_nan=True, allow_infinity=True),
    written=st.integers(0, 2**50),
    step=st.none() | st.integers(0),
)
def test_the_parser_reads_back_what_was_written(run, loss, written, step):
    rendered = text(Figures(step=step, loss=loss, bytes_written=written), run, 7, {"loss": 3, "wear": 0}, {"loss"})
    for line in rendered.removesuffix("\n").split("\n"):
        assert re.fullmatch(r"# (HELP|TYPE) \S+ .+", line) or SAMPLE.fullmatch(line), line
    found = samples(rendered)
    label = ("run", run)
    assert found[("offload_disk_written_bytes_total", label)] == written
    assert found[("offload_loss", label)] == loss or math.isnan(loss)
    assert (("offload_step", label) in found) == (step is not None)
    assert found[("offload_alarm_active", ("alarm", "loss"), label)] == 1
    assert found[("offload_alarms_total", ("alarm", "wear"), label)] == 0


def test_help_and_type_come_before_the_samples_of_a_name():
    lines = text(Figures(loss=1.5), "a", 1, {"loss": 0}, set()).splitlines()
    at = lines.index('offload_loss{run="a"} 1.5')
    assert lines[at - 2].startswith("# HELP offload_loss ") and lines[at - 1] == "# TYPE offload_loss gauge"
    assert lines[-1] == 'offload_alarms_total{run="a",alarm="loss"} 0'


def test_counters_never_fall_and_all_that_is_known_is_there(scripted, clock):
    monitor = Monitor(scripted, clock=clock, disk_usage=lambda path: SimpleNamespace(free=5), name='run "1"\n')
    last = {}
    for number in range(4):
        scripted.step()
        clock.forward(1)
        monitor.observe(1.0)
        if number == 2:
            scripted.rollback()
        found = samples(monitor.prometheus())
        for key, value in found.items():
            if key[0].endswith("_total"):
                assert value >= last.get(key, 0)
        last = found
    label = ("run", 'run "1"\n')
    assert last[("offload_observations_total", label)] == 4 and last[("offload_step", label)] == 3
    assert last[("offload_alarm_active", ("alarm", "disk_free"), label)] == 1, "5 bytes are not enough"
    assert last[("offload_hit_ratio", label)] == 0.5 and last[("offload_step_seconds", label)] == 1


def test_it_is_served_on_this_machine_until_it_is_closed(scripted):
    monitor = Monitor(scripted, disk_usage=lambda path: SimpleNamespace(free=10**12))
    with monitor.serve() as server:
        with urllib.request.urlopen(server.url, timeout=30) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE and answer.read().decode() == monitor.prometheus()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url.replace("/metrics", "/"), timeout=30)
        assert server.url.startswith("http://127.0.0.1:")
        with pytest.raises(OSError):
            monitor.serve(server.port)
    server.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=5)
