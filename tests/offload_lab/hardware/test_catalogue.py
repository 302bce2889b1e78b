"""The catalogue: every figure has a source, sums by hand, parts that compose, names that are found or suggested."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from offload_lab import catalogue, prices
from offload_lab.catalogue import assemble, disk, gpu, link, machine, memory
from offload_lab.hardware import Figure, Hardware

SHEET = r'[^"(]+, "[^"]{8,}", (19|20)\d\d, https://\S+'
"""Author, "title", year, address."""
ROOT = Path(__file__).resolve().parents[3]
MACHINES = catalogue.names()["machine"]


def figures(thing):
    return {f.name: getattr(thing, f.name) for f in fields(thing) if isinstance(getattr(thing, f.name), Figure)}


@pytest.mark.parametrize("kind", ["machine", "gpu", "link", "memory", "disk"])
def test_every_figure_says_where_it_is_from_and_none_is_called_measured(kind):
    for name in catalogue.names()[kind]:
        for what, figure in figures(getattr(catalogue, kind)(name)).items():
            assert figure.source in ("data sheet", "assumed"), (name, what)
            assert figure.value > 0 or what == "price", (name, what)
            assert figure.note, (name, what)
            if figure.source == "data sheet" and what != "price":
                assert re.search(SHEET, figure.note), (name, what, figure.note)


def test_what_no_data_sheet_states_is_assumed():
    assert {figure.source for figure in figures(disk("sata")).values()} == {"assumed"}
    for name in ("cxl3x8", "cxl3x16"):
        assert {figure.source for figure in figures(memory(name)).values()} == {"assumed"}
    assert link("nvlink-c2c-gb10").line_rate.source == gpu("t4").bandwidth.source == "assumed"


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_survives_json(name):
    import json

    built = machine(name)
    assert Hardware.from_dict(json.loads(built.to_json())) == built


def test_what_the_course_names_is_there():
    for name in ("pcie3x16", "pcie4x16", "pcie5x16", "pcie6x16", "nvlink-c2c"):
        assert link(name).name == name
    for name in ("t4", "l4", "rtx4090", "a100-80", "h100-80", "gh200"):
        assert gpu(name).name == name
    assert {"cxl2x8", "cxl3x16"} <= set(catalogue.names()["memory"])
    assert {"laptop", "colab-t4", "rtx4090-nvme", "h100-80-server", "gh200"} <= set(MACHINES)


def test_line_rates_by_hand():
    """16 lanes × 8 GT/s are 128 Gbit/s; of 130 bits 128 are data; 8 bits a byte: 15.75 GB/s. Each generation doubles it."""
    assert link("pcie3x16").line_rate.value == pytest.approx(15.754e9, rel=1e-4)
    for older, newer in (("pcie3x16", "pcie4x16"), ("pcie4x16", "pcie5x16")):
        assert link(newer).line_rate.value == pytest.approx(2 * link(older).line_rate.value)
    assert link("pcie6x16").line_rate.value == pytest.approx(118e9)  # 16 × 64 / 8 = 128 GB/s, × 236/256
    assert link("pcie4x8").line_rate.value * 2 == pytest.approx(link("pcie4x16").line_rate.value)
    assert link("nvlink-c2c").line_rate.value == 450e9


def test_nothing_gets_more_than_its_wires_or_its_memory():
    for name in catalogue.names()["link"]:
        wires = link(name)
        assert wires.pageable.value <= wires.pinned.value < wires.line_rate.value
    for name in catalogue.names()["memory"]:
        held = memory(name)
        most = held.peak.value if held.one_way is None else 2 * held.peak.value
        assert held.update.value < most
    for name in catalogue.names()["disk"]:
        kept = disk(name)
        assert kept.write_for_training.value <= kept.write.value
        if kept.duplex == "half":
            slow, fast = sorted((kept.read.value, kept.write_for_training.value))
            assert slow * 0.999 <= kept.mixed_for_training.value <= fast * 1.001


def test_a_consumer_disk_is_taken_at_what_it_writes_for_hours_and_says_so():
    built = machine("laptop")
    assert built.disk_write.value == 1.75e9  # not the 3.3 GB/s on the box
    assert any("3.3 GB/s" in warning and "1.8 GB/s" in warning for warning in built.warnings)
    # one second of reading 3.5 GB and two of writing 3.5 GB: 7 GB in 3 seconds
    assert built.disk_mixed.value == pytest.approx(7e9 / 3)


def test_a_machine_of_parts():
    built = assemble("mine", memory=memory("ddr5-dual"), disk=disk("nvme5-server"), gpu=gpu("a100-80"), gpus=2, ram=64 << 30)
    assert built.ram.value == 64 << 30 and built.gpus == 2
    assert built.host_to_device == link("pcie4x16").pinned  # the one it is made for
    slower = assemble("slower", memory=memory("ddr5-dual"), gpu=gpu("a100-80"), link=link("pcie3x16"))
    assert slower.host_to_device.value == pytest.approx(built.host_to_device.value / 2)
    assert slower.disk_read is None and slower.price is None
    # DDR5-5600 on two channels of 8 bytes: 89.6 GB/s
    assert memory("ddr5-dual").peak.value == pytest.approx(89.6e9)


def test_memory_behind_a_link_is_a_tier_below_ram():
    below = memory("cxl2x8").as_disk()
    assert below.duplex == "full" and below.mixed_for_training.value == 2 * below.read.value
    # 8 lanes × 32 GT/s × 128/130 / 8 = 31.5 GB/s, of which 0.8
    assert below.read.value == pytest.approx(25.2e9, rel=1e-3)
    assert machine("rtx4090-cxl").disk_read.value > machine("rtx4090-server-nvme").disk_read.value
    with pytest.raises(ValueError, match="ddr5-dual is the host's own memory"):
        memory("ddr5-dual").as_disk()


@pytest.mark.parametrize(
    ("look", "name", "suggested"),
    [(link, "pcie4x15", "pcie4x16"), (gpu, "a100", "a100-80"), (machine, "rtx4090", "rtx4090-nvme"), (disk, "nvme", "sata")],
)
def test_a_name_that_is_not_there_is_an_error_with_those_that_are(look, name, suggested):
    with pytest.raises(ValueError, match=f"the catalogue has no {look.__name__} '{name}'.*{suggested}"):
        look(name)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="leads to an accelerator"):
        assemble("x", memory=memory("ddr5-dual"), link=link("pcie4x16"))
    with pytest.raises(ValueError, match="gpus=0: at least one"):
        assemble("x", memory=memory("ddr5-dual"), gpu=gpu("t4"), gpus=0)


def test_unified_memory_is_marked():
    assert machine("gb10").unified and machine("m4-max").unified
    assert not machine("gh200").unified  # coherent, but two memories
    for name in MACHINES:
        built = machine(name)
        if built.unified:
            assert built.gpu_memory.value <= built.ram.value


def test_no_torch_is_needed():
    code = "import sys, offload_lab.catalogue as c; c.machine('gh200'); sys.exit('torch' in sys.modules)"
    # The package's own __init__ may import torch; what is pure is this module.
    code = (
        "import sys, types, pathlib; package = types.ModuleType('offload_lab'); "
        "package.__path__ = [str(pathlib.Path('offload_lab').resolve())]; sys.modules['offload_lab'] = package; " + code
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


# --- prices ------------------------------------------------------------------------------------------------------------


def test_every_machine_has_a_price_and_every_price_a_machine():
    assert set(prices.load()) == set(MACHINES)


def test_a_bought_machine_by_hand():
    """$3,000 in 2 years at 50 % are 8,760 hours of work; 500 W at $0.20 are ten cents an hour."""
    row = prices.Price("assumed", "mine", "2026-01", buy=3000, years=2, use=0.5, watts=500, kwh=0.2)
    assert row.figure().value == pytest.approx(3000 / 8760 + 0.10)
    assert row.figure().note.startswith("2026-01: $3,000 over 2 years at 50% use")


def test_the_table_is_a_file_that_one_edits(tmp_path, monkeypatch):
    mine = tmp_path / "prices.toml"
    mine.write_text('date = "2027-03"\n[machines.gh200]\nhour = 7.5\nnote = "our cluster"\n')
    assert machine("gh200", prices.load(mine)).price == Figure(7.5, "assumed", "2027-03: our cluster")
    assert machine("laptop", prices.load(mine)).price is None
    monkeypatch.setenv(prices.VARIABLE, str(mine))
    assert machine("gh200").price.value == 7.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("date = ", "no TOML"),
        ("[machines.gh200]\nhour = 1\n", 'date = "2026-05" and tables'),
        ('date = "x"\n[machines.gh200]\nhours = 1\n', r"\[machines.gh200\].*'hours'"),
        ('date = "x"\n[machines.gh200]\nhour = -1\n', r"\[machines.gh200\]: hour=-1"),
        ('date = "x"\n[machines.gh200]\nhour = 1\nbuy = 1\n', "either hour= .* or buy="),
        ('date = "x"\n[machines.gh200]\nbuy = 1\nuse = 0\n', "use=0"),
        ('date = "x"\n[machines]\ngh200 = 3\n', r"\[machines.gh200\]"),
    ],
)
def test_a_table_that_is_none_names_file_machine_and_field(tmp_path, text, told):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"(?s)p\.toml.*{told}"):
        prices.load(tmp_path / "p.toml")
    with pytest.raises(FileNotFoundError):
        prices.load(tmp_path / "none.toml")
