"""The contract of a workload: what is accepted, and what is refused with a reason."""

import json
import sys

import pytest
import torch

from offload_lab.health.load_child import ContractError, build, load, one_step, run


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "my workload.py"
        path.write_text(text)
        return path

    return write


def test_the_file_is_imported_beside_its_own_modules(script, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "beside_it.py").write_text("value = 7")
    path = script(
        "import beside_it\nif __name__ == '__main__':\n    raise SystemExit('no')\ndef given():\n    return beside_it.value"
    )
    assert load(path, "given")() == 7
    with pytest.raises(ContractError, match="no function 'workload'"):
        load(path, "workload")


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (None, "not NoneType"),
        ((1, 2), "must return"),
        ((1, 2, 3), "torch.nn.Module, not int"),
        ((torch.nn.Linear(1, 1), 2, []), r"no step\(\)"),
        ((torch.nn.Linear(1, 1), torch.optim.SGD([torch.zeros(1)]), 3), "iterable of losses, not int"),
    ],
)
def test_what_is_no_workload_is_refused(made, named, tmp_path):
    with pytest.raises(ContractError, match=named):
        build(lambda: made, tmp_path)


def test_the_scratch_folder_is_given_where_it_is_asked_for(tmp_path):
    model = torch.nn.Linear(1, 1)
    seen = []
    whole = (model, torch.optim.SGD(model.parameters()), [])
    assert build(lambda folder: seen.append(folder) or whole, tmp_path) == whole and seen == [tmp_path]
    assert build(lambda folder=None: seen.append(folder) or whole, tmp_path) == whole and seen[-1] is None
    with pytest.raises(ContractError, match="one argument"):
        build(lambda a, b: whole, tmp_path)


@pytest.mark.parametrize("loss", [torch.ones(2, requires_grad=True), torch.ones(()), "1", None, True])
def test_what_is_no_loss_is_refused(loss):
    with pytest.raises(ContractError, match="a loss must be"):
        one_step(loss, None)


def test_a_tensor_gets_backward_and_step_and_a_number_nothing(tmp_path):
    weight = torch.nn.Parameter(torch.tensor(3.0))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    assert one_step(weight * 2, optimizer) == 6.0
    assert weight.item() == pytest.approx(2.8) and weight.grad is None
    assert one_step(4, optimizer) == 4.0 and weight.item() == pytest.approx(2.8)


def test_a_run_tells_of_each_step(script, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    path = script(
        "import torch\n"
        "from offload_lab import OffloadAdamW, OffloadPolicy\n"
        "def workload(folder):\n"
        "    model = torch.nn.Linear(100, 10)\n"
        "    policy = OffloadPolicy(tier='disk', directory=folder / 'state', overlap='forward')\n"
        "    optimizer = OffloadAdamW(model.parameters(), offload=policy)\n"
        "    return model, optimizer, (model(torch.ones(1, 100)).pow(2).mean() for _ in range(100))\n"
    )
    (tmp_path / "scratch").mkdir()
    events = tmp_path / "events.jsonl"
    run({"script": str(path), "function": "workload", "steps": 4, "events": str(events), "scratch": str(tmp_path / "scratch")})
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert [event["event"] for event in told] == ["started", "built", "step", "step", "step", "step", "ended"]
    assert told[1]["parameters"] == 1010 and told[1]["optimizer"] == "OffloadAdamW"
    assert [event["step"] for event in told[2:6]] == [1, 2, 3, 4]
    assert told[5]["loss"] < told[2]["loss"] and all(event["seconds"] > 0 and event["peak_ram"] > 1e7 for event in told[2:6])
    assert told[5]["disk"] > 0 and told[6]["stats"]["steps"] == 4
