"""What the demonstration says when it is over: a table, plain words, a picture, and a page that holds all three."""

from __future__ import annotations

from html import escape

from offload_lab.demo import DemoResult, Run
from offload_lab.plots import MemoryPlot
from offload_lab.state_bytes import readable

HEADINGS = (
    "optimizer",
    "outcome",
    "peak memory (resident)",
    "peak memory (as the limit counts)",
    "bytes on disk",
    "time a step",
    "final loss",
)

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif;
       color: #1a1a1a; background: #ffffff; }
h1 { font-size: 1.5rem; line-height: 1.25; }
.offload-demo table { border-collapse: collapse; margin: 1rem 0; }
.offload-demo th, .offload-demo td { padding: .35rem .7rem; border-bottom: 1px solid #8888; text-align: right;
       vertical-align: bottom; }
.offload-demo th:first-child, .offload-demo td:first-child, .offload-demo th:nth-child(2),
.offload-demo td:nth-child(2) { text-align: left; white-space: nowrap; }
.offload-demo .scroll { overflow-x: auto; }
.offload-demo svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #16181c; } }
"""


def cells(run: Run) -> tuple[str, ...]:
    """One row under HEADINGS; a dash where there is no figure."""
    return (
        run.optimizer,
        run.outcome,
        readable(run.peak_bytes),
        readable(run.peak_data_bytes) if run.peak_data_bytes else "–",
        readable(run.disk_bytes) if run.disk_bytes else "0",
        "–" if run.seconds_per_step is None else f"{run.seconds_per_step:.2f} s",
        "–" if run.final_loss is None else f"{run.final_loss:.6f}",
    )


def table(result: DemoResult) -> str:
    """The table as aligned text: words to the left, figures to the right."""
    rows = [HEADINGS, *(cells(run) for run in result.runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    aligns = [str.ljust, str.ljust, *[str.rjust] * (len(HEADINGS) - 2)]
    lines = ["  ".join(align(*pair) for align, *pair in zip(aligns, row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def words(result: DemoResult) -> list[str]:
    """What happened, a paragraph each. Says which figures are predicted; all others are measured."""
    n = result.parameters
    said = [_about_the_limit(result, n)]
    said += [_about(run, result, n) for run in result.runs]
    losses = {run.optimizer: run.final_loss for run in result.runs if run.final_loss is not None}
    if len(losses) > 1:
        said.append(_about_losses(losses))
    if result.on:
        said.append(result.on)
    return said


def _about_the_limit(result: DemoResult, n: int) -> str:
    model = f"One bfloat16 model of {n:,} parameters, one text and one seed, a process of its own for each optimizer."
    if result.limit_bytes is None:
        return f"{model} No limit was set on their memory: {result.no_limit_because}. Outcomes and peaks are as measured."
    return (
        f"{model} Each was allowed {readable(result.limit_bytes)} of private memory beyond what it had before the model was "
        f"built; the operating system enforced it. That is {result.limit_bytes / n:.0f} bytes a parameter (predicted): what "
        "AdamW takes for weights (2), gradients (2), float32 masters (4) and two moments (4 + 4), with nothing left for "
        "activations. The limit counts private memory that was asked for; resident memory also holds pages of libraries, so it "
        "can stand a little above."
    )


def _about(run: Run, result: DemoResult, n: int) -> str:
    if run.outcome != "trained":
        return (
            f"{run.optimizer} ran out of memory in step {run.steps + 1} of {result.steps}, at {readable(run.peak_bytes)} "
            f"({run.peak_bytes / n:.1f} bytes a parameter). The system said: {run.message}"
        )
    disk = f", with {readable(run.disk_bytes)} in files" if run.disk_bytes else ""
    return (
        f"{run.optimizer} trained all {run.steps} steps in {readable(run.peak_bytes)} ({run.peak_bytes / n:.1f} bytes a "
        f"parameter){disk}."
    )


def _about_losses(losses: dict[str, float]) -> str:
    offloaded = {name: loss for name, loss in losses.items() if name.startswith("OffloadAdamW")}
    said = []
    if len(offloaded) > 1:
        same = len(set(offloaded.values())) == 1
        said.append(
            f"Both tiers ended at the loss {next(iter(offloaded.values())):.6f}, the same to the last bit: where the state "
            "lies changes no number."
            if same
            else f"The tiers ended at different losses, {' and '.join(map(str, offloaded.values()))}. They should agree to the "
            "last bit; please report this."
        )
    if "torch.AdamW" in losses and offloaded:
        ours, theirs = next(iter(offloaded.values())), losses["torch.AdamW"]
        said.append(
            f"torch.AdamW ended at {theirs:.6f}, {abs(ours - theirs) / abs(theirs):.1e} away in relative terms: float32 "
            "arithmetic rounds the last digits differently in each of these update loops, torch's own among themselves too."
        )
    return " ".join(said)


def as_text(result: DemoResult) -> str:
    return "\n\n".join([table(result), *words(result)])


def picture(result: DemoResult) -> MemoryPlot:
    """Memory over time of every run, with the limit as a line. Bytes by kind are those the model and the optimizer hold."""
    series = {run.optimizer: run.readings for run in result.runs}
    notes = {run.optimizer: f"{run.outcome}, {run.steps} of {result.steps} steps" for run in result.runs}
    return MemoryPlot(series, "Memory over time, by kind", result.limit_bytes, notes=notes)


def as_fragment(result: DemoResult, drawing: str | None = None) -> str:
    """Table, picture and words as HTML; no script. In a notebook the picture is an image, which is shown untrusted as well."""
    drawing = picture(result).bundle()["text/html"] if drawing is None else drawing
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in HEADINGS)
    body = "".join(
        '<tr><th scope="row">{}</th>{}</tr>'.format(escape(first), "".join(f"<td>{escape(cell)}</td>" for cell in others))
        for first, *others in map(cells, result.runs)
    )
    paragraphs = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in words(result))
    return (
        '<div class="offload-demo"><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{drawing}{paragraphs}</div>"
    )


def as_page(result: DemoResult) -> str:
    """A whole page: nothing is loaded from elsewhere, and it reads on a light and on a dark background."""
    fragment = as_fragment(result, picture(result).svg())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>One model, three optimizers, one limit</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>One model, three optimizers, one limit</h1>{fragment}</main></body></html>\n"
    )
