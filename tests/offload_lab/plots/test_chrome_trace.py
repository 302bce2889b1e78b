"""The Chrome trace against the Trace Event Format: what Perfetto needs to show every event in its place."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from offload_lab.cli import app
from offload_lab.trace import Event, Recorder, chrome_trace, chrome_traces, save_chrome_trace, slots

events = st.lists(
    st.builds(
        lambda name, lane, partition, start, long, nbytes: Event(name, lane, partition, start, start + long, nbytes),
        st.text(max_size=8), st.sampled_from(["cpu", "disk-read", "\u2028", ""]), st.integers(0, 9),
        st.floats(-1e6, 1e6), st.floats(0, 100), st.integers(0, 10**12),
    ),
    max_size=30,
)  # fmt: skip


def held(trace):
    """Asserts what the format asks of each event, and returns (metadata, complete events)."""
    read = json.loads(json.dumps(trace, allow_nan=False))
    assert set(read) == {"traceEvents", "displayTimeUnit"} and read["displayTimeUnit"] in ("ms", "ns")
    meta, complete = [], []
    for row in read["traceEvents"]:
        assert isinstance(row["pid"], int) and isinstance(row["tid"], int) and row["pid"] > 0 and row["tid"] >= 0
        assert isinstance(row["name"], str) and isinstance(row["args"], dict)
        if row["ph"] == "M":
            wanted = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}
            assert set(row["args"]) == {wanted[row["name"]]} and "ts" not in row
            meta.append(row)
        else:
            assert row["ph"] == "X" and row["ts"] >= 0 and row["dur"] >= 0 and isinstance(row["cat"], str)
            complete.append(row)
    return meta, complete


def ends(row, whole):
    """Start and end in nanoseconds as Perfetto has them: `ts` and `dur` times 1,000, each made a whole number by itself."""
    start = whole(row["ts"] * 1000)
    return start, start + whole(row["dur"] * 1000)


@given(events, events)
def test_every_event_is_there_once_and_those_of_a_thread_do_not_cross(one, other):
    meta, complete = held(chrome_traces({"predicted": one, "measured": other}))
    names = {row["pid"]: row["args"]["name"] for row in meta if row["name"] == "process_name"}
    assert list(names.values()) == ["predicted", "measured"]
    threads = {(row["pid"], row["tid"]): row["args"]["name"] for row in meta if row["name"] == "thread_name"}
    for pid, given_events in zip(names, (one, other), strict=True):
        mine = [row for row in complete if row["pid"] == pid]
        origin = min((event.start for event in given_events), default=0.0)
        # To the nanosecond: the start, and the end, which is where a viewer puts it.
        wanted = [
            (f"{e.name} {e.partition}", round((e.start - origin) * 1e9), round((e.end - origin) * 1e9)) for e in given_events
        ]
        for whole in (round, int):  # a viewer rounds, an older one cuts off
            seen = [(row["name"], *ends(row, whole)) for row in mine]
            assert sorted(seen) == sorted(wanted)
        assert all((row["pid"], row["tid"]) in threads for row in mine)
        assert min((row["ts"] for row in mine), default=0.0) == 0
    for thread in threads:
        of_thread = [row for row in complete if (row["pid"], row["tid"]) == thread]
        for whole in (round, int):
            spans = sorted(ends(row, whole) for row in of_thread)
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_tasks_that_follow_at_once_do_not_cross_by_a_nanosecond():
    """Perfetto drops an event that crosses another one of its thread; two thirds of a microsecond are no whole nanoseconds."""
    at = [n / 1.5e6 + 1e5 for n in range(3000)]
    tasks = [Event("read", "disk-read", n, a, b, 8) for n, (a, b) in enumerate(itertools.pairwise(at))]
    _, complete = held(chrome_trace(tasks))
    assert {row["tid"] for row in complete} == {1}
    for whole in (round, int):
        spans = [ends(row, whole) for row in complete]
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_a_lane_whose_tasks_overlap_is_as_many_threads_as_it_takes():
    rows = [(0, 4), (1, 2), (2, 3), (3, 6), (4, 5)]
    overlapping = [Event("read", "disk-read", n, float(a), float(b), 8) for n, (a, b) in enumerate(rows)]
    assert slots(overlapping) == [0, 1, 1, 1, 0]
    meta, complete = held(chrome_trace(overlapping))
    assert [row["args"]["name"] for row in meta if row["name"] == "thread_name"] == ["disk-read", "disk-read (2)"]
    assert [(row["name"], row["tid"], row["ts"], row["dur"]) for row in complete][:2] == [
        ("read 0", 1, 0.0, 4e6), ("read 1", 2, 1e6, 1e6)
    ]  # fmt: skip
    assert complete[0]["args"] == {"partition": 0, "bytes": 8}


@pytest.mark.parametrize("start, end", [(2.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_an_event_at_no_time_is_refused(start, end):
    with pytest.raises(ValueError, match=r"event 'read' of partition 3 runs from"):
        chrome_trace([Event("read", "disk-read", 3, start, end, 0)])


def test_a_recorder_saves_what_it_has(tmp_path):
    recorder = Recorder()
    recorder.add(Event("read", "disk-read", 0, 5.0, 6.0, 8))
    path = recorder.save(tmp_path / "trace.json")
    assert json.loads(path.read_text()) == json.loads(json.dumps(recorder.chrome_trace()))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        recorder.save(tmp_path / "nowhere" / "trace.json")
    both = save_chrome_trace(str(tmp_path / "both.json"), {"a": [], "b": recorder.events()})
    assert len(held(json.loads(both.read_text()))[1]) == 1


def test_nothing_is_a_valid_trace_as_well():
    assert held(chrome_trace([]))[1] == []


def test_the_command_records_real_steps(tmp_path):
    out, svg = tmp_path / "trace.json", tmp_path / "step.svg"
    options = ["trace", "--out", str(out), "--svg", str(svg), "--params", "3e6", "--steps", "2", "--directory", str(tmp_path)]
    done = CliRunner().invoke(app, [*options, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    _, complete = held(json.loads(out.read_text()))
    assert said["tasks"] == len(complete) and said["step_seconds"] > 0
    assert {row["cat"] for row in complete} == {"read", "update", "write"}
    assert sum(said["waited_seconds"].values()) == pytest.approx(said["step_seconds"], abs=1e-4)
    assert "Step 2 of 3e+06 parameters" in svg.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step.svg", "trace.json"], "the state is deleted"


@pytest.mark.parametrize(
    "options, said",
    [
        (["--params", "3"], "--params 3"),
        (["--out", "nowhere/trace.json"], "--out: 'nowhere/trace.json' cannot be written"),
        (["--svg", "."], "--svg: '.' cannot be written"),
        (["--directory", "nowhere"], "--directory: there is no folder 'nowhere'"),
        (["--params", "1e5", "--ram-budget", "many"], "many"),
    ],
)
def test_what_the_command_cannot_do_is_said_before_it_runs(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["trace", *options])
    assert done.exit_code == 2 and said in done.stderr and not (tmp_path / "trace.json").exists()
