"""Lesson 3: what it says of link, passes and gradients holds; its check accepts what is right and names what is wrong."""

import re

import pytest
import torch

from course.checks.lesson_03 import check_optimizer
from course.pretend import PretendLink, Wire
from offload_lab import OffloadAdamW


def adamw(weight, gradient, exp_avg, exp_avg_sq, step, lr, betas, eps, decay):
    beta1, beta2 = betas
    weight *= 1 - lr * decay
    exp_avg += (1 - beta1) * (gradient - exp_avg)
    exp_avg_sq += (1 - beta2) * (gradient * gradient - exp_avg_sq)
    weight -= lr * (exp_avg / (1 - beta1**step)) / ((exp_avg_sq / (1 - beta2**step)).sqrt() + eps)


class Right:
    def __init__(self, weights, wire, **settings):
        self.weights, self.wire, self.settings, self.count = list(weights), wire, settings, 0
        self.masters = [weight.detach().float() for weight in self.weights]
        self.state = [(torch.zeros_like(master), torch.zeros_like(master)) for master in self.masters]

    def step(self):
        self.count += 1
        for number, weight in enumerate(self.weights):
            if weight.grad is not None:
                self.one(number, weight)

    def one(self, number, weight):
        self.update(number, self.fetched(weight))
        self.send(number, weight)

    def fetched(self, weight):
        return self.wire.down(weight.grad).float()

    def update(self, number, gradient):
        adamw(self.masters[number], gradient, *self.state[number], self.count, **self.settings)

    def send(self, number, weight):
        self.wire.up(self.masters[number].to(weight.dtype), weight)


class AlsoRight:
    """torch's own optimizer over the masters, and gradients that are given up as soon as they have come down."""

    def __init__(self, weights, wire, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        self.pairs = [(weight, torch.nn.Parameter(weight.detach().float())) for weight in weights]
        self.wire = wire
        self.inner = torch.optim.AdamW([m for _, m in self.pairs], lr=lr, betas=betas, eps=eps, weight_decay=decay)

    @property
    def masters(self):
        return [master.detach() for _, master in self.pairs]

    def step(self):
        taken = [(weight, master) for weight, master in self.pairs if weight.grad is not None]
        for weight, master in taken:
            master.grad, weight.grad = self.wire.down(weight.grad).float(), None
        self.inner.step()
        for weight, master in taken:
            self.wire.up(master.detach().bfloat16(), weight)
            master.grad = None


@pytest.mark.parametrize("kind", [Right, AlsoRight])
def test_a_right_optimizer_passes_the_engines_own_test(kind, capsys):
    assert check_optimizer(kind)
    assert "ok: AdamW over 5 steps" in capsys.readouterr().out


class Stub:
    def __init__(self, weights, wire, **settings):
        self.masters = None

    def step(self): ...


class NoStep(Right):
    def step(self): ...


class Widens(Right):
    def fetched(self, weight):
        return self.wire.down(weight.grad.float())


class NoWire(Right):
    def fetched(self, weight):
        return weight.grad.float()


class FetchesTheWeight(Right):
    def fetched(self, weight):
        self.wire.down(weight.detach())
        return super().fetched(weight)


class SendsMasters(Right):
    def send(self, number, weight):
        self.wire.up(self.masters[number], weight)


class SendsNothing(Right):
    def send(self, number, weight):
        weight.data.copy_(self.masters[number])


class SendsBefore(Right):
    def one(self, number, weight):
        self.send(number, weight)
        self.update(number, self.fetched(weight))


class Alone(Right):
    def send(self, number, weight):
        super().send(number, weight)
        self.masters[number].copy_(weight.detach())


class SixteenBitMasters(Right):
    def __init__(self, weights, wire, **settings):
        super().__init__(weights, wire, **settings)
        self.masters = [master.bfloat16() for master in self.masters]


class NoCount(Right):
    def update(self, number, gradient):
        adamw(self.masters[number], gradient, *self.state[number], 1, **self.settings)


class CountsUpdates(Right):
    def update(self, number, gradient):
        adamw(self.masters[number], gradient, *self.state[number], self.count, **self.settings)
        self.count += 1

    def step(self):
        self.count = max(self.count, 1)
        for number, weight in enumerate(self.weights):
            if weight.grad is not None:
                self.one(number, weight)


class Forgets(Right):
    def update(self, number, gradient):
        fresh = torch.zeros_like(gradient), torch.zeros_like(gradient)
        adamw(self.masters[number], gradient, *fresh, self.count, **self.settings)


class Defaults(Right):
    def __init__(self, weights, wire, **settings):
        super().__init__(weights, wire, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01)


class NoDecay(Right):
    def __init__(self, weights, wire, **settings):
        super().__init__(weights, wire, **(settings | {"decay": 0.0}))


class NarrowMoments(Right):
    def update(self, number, gradient):
        super().update(number, gradient)
        for moment in self.state[number]:
            moment.copy_(moment.bfloat16())


class Neighbours(Right):
    def fetched(self, weight):
        return torch.flip(super().fetched(weight).flatten(), (0,)).reshape(weight.shape)


class MissingOneGradient(Right):
    def step(self):
        self.count += 1
        for number, weight in enumerate(self.weights):
            self.one(number, weight)


class OneTensor(Right):
    def __init__(self, weights, wire, **settings):
        super().__init__(weights, wire, **settings)
        self.masters = self.masters[0]


class SmallOnly(Right):
    def one(self, number, weight):
        if weight.numel() > 5000:
            raise RuntimeError("too large for me")
        super().one(number, weight)


@pytest.mark.parametrize(
    "kind, said",
    [
        (OneTensor, "self.masters has to be a list of 3 tensors"),
        (SmallOnly, "it stops with RuntimeError: too large for me"),
        (Stub, "Not begun. Fill in __init__"),
        (NoStep, "Not begun. Fill in step()"),
        (Widens, "You widen before the link"),
        (NoWire, "nothing came down the link"),
        (FetchesTheWeight, "What else do you fetch?"),
        (SendsMasters, "float32 masters. Round them on this side"),
        (SendsNothing, "nothing went up the link"),
        (SendsBefore, "is not its master, rounded"),
        (Alone, "Your masters are the rounded weights again"),
        (SixteenBitMasters, "is torch.bfloat16. A master is float32"),
        (NoCount, "Your step count stays at 1"),
        (CountsUpdates, "Your count goes up with each weight"),
        (Forgets, "Your moments begin at zero in each step"),
        (Defaults, "with its own defaults"),
        (NoDecay, "are not decayed"),
        (NarrowMoments, "moments are kept in bfloat16"),
        (Neighbours, "with this step's gradient of its own weight"),
        (MissingOneGradient, "it stops with AttributeError"),
        (lambda: None, "it stops with TypeError"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(kind, said, capsys):
    assert not check_optimizer(kind)
    assert said in capsys.readouterr().out


def test_a_pretended_link_copies_what_the_engine_tells_it_and_changes_no_bit():
    def trained():
        generator = torch.Generator().manual_seed(1)
        weight = torch.nn.Parameter(torch.randn(5003, generator=generator).bfloat16())
        with OffloadAdamW([weight], lr=0.01) as optimizer:
            for _ in range(3):
                weight.grad = torch.randn(5003, generator=generator).bfloat16()
                optimizer.step()
        return weight.detach()

    alone = trained()
    link = PretendLink(down=1e9, up=1e9)
    with link.in_place():
        assert torch.equal(trained(), alone)
    assert link.crossed == {"down": 3 * 4 * 5003, "up": 3 * 2 * 5003}
    assert sum(event.nbytes for event in link.events) == sum(link.crossed.values())
    assert all(event.end - event.start >= event.nbytes / 1e9 for event in link.events)
    assert torch.equal(trained(), alone) and link.crossed["up"] == 3 * 2 * 5003, "it is not in place any more"


@pytest.mark.parametrize("rate", [0, -1.0, float("nan")])
def test_a_rate_has_to_be_above_zero(rate):
    with pytest.raises(ValueError, match="above 0"):
        PretendLink(up=rate)


def test_a_wire_counts_in_the_dtype_that_crosses():
    wire, weight = Wire(), torch.zeros(10, dtype=torch.bfloat16)
    wire.up(torch.full((10,), 1.001), weight)
    assert weight.tolist() == [1.0] * 10 and wire.crossed("up") == 40
    assert wire.down(weight).data_ptr() != weight.data_ptr() and wire.crossed("down") == 20


def test_the_engine_moves_four_bytes_down_and_two_up(ran):
    said = ran("03").text("count")
    assert re.findall(r"(\d) bytes a parameter ", said) == ["4", "2"] and "Counted: 6.00 bytes" in said
    assert "down 8, up 4, through memory 32 bytes" in ran("03").text("transfer")


def test_bytes_of_one_pass_are_those_that_the_engine_counts(ran):
    assert re.findall(r"(\d+)   bytes a parameter", ran("03").text("bytes")) == ["40", "28"]
    weight = torch.nn.Parameter(torch.zeros(1000, dtype=torch.bfloat16))
    weight.grad = torch.ones_like(weight)
    with OffloadAdamW([weight]) as optimizer:
        optimizer.step()
        assert optimizer.stats()["last_step"]["bytes"]["update"] == 26 * 1000, "and 2 for the look at the gradients"


def test_gradients_that_leave_are_never_all_there(ran):
    said = ran("03").text("leave-run")
    most = [float(found) for found in re.findall(r"at most +([\d.]+) MB of", said)]
    of = float(re.search(r"of ([\d.]+) MB of gradients", said)[1])
    assert most[0] == of and most[1] <= of
    assert "<img" in ran("03").html("leave-run")


def test_sixteen_bit_sums_are_off_and_wide_ones_are_not(ran):
    narrow, wide = (float(found) for found in re.findall(r": ([\d.]+) % off", ran("03").text("accumulate")))
    assert narrow > 0.1 and wide < 0.001


def test_an_exercise_not_begun_ends_well(ran):
    assert "Not begun." in ran("03").text("make-check")
