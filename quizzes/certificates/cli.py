"""`offload-quiz certificate …`: issue and verify certificates."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import (
    badge,
    cli_faces,
    cli_page,
    cli_registry,
    cli_site,
    credential,
    did_key,
    ed25519,
    judged,
    keys,
    rdf,
    results,
    signing,
    text,
)
from quizzes.certificates.certificate import ASSESSMENTS
from quizzes.certificates.cli_common import PassphraseFile, open_key, read, say, stop
from quizzes.certificates.cli_issue import bank_version, course_version, issue_into, require_rdf, tidy_name
from quizzes.certificates.cli_verify import verify
from quizzes.certificates.credential import Award
from quizzes.certificates.issuing import Achieved, File, Passed
from quizzes.certificates.publish import publish
from quizzes.certificates.verify import file_bytes
from quizzes.certificates.verify import verify as verify_bytes
from quizzes.say import _

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


for _command in (
    cli_registry.keygen,
    cli_registry.init,
    cli_registry.rotate,
    cli_registry.refresh,
    cli_registry.revoke,
    verify,
    cli_page.page,
    cli_site.site,
):
    app.command()(_command)
cli_faces.register(app)


@app.command()
def issue(
    key: Annotated[Path, typer.Option(help="The issuer's private key, made by `keygen`.")],
    results_files: Annotated[
        list[Path], typer.Option("--results", help="What `offload-quiz grade --json` printed, a file per lesson.")
    ],
    student: Annotated[str, typer.Option(help="The student, as named in the results.")],
    lesson: Annotated[list[str], typer.Option(help="The lesson, two digits; once for each --results, in the same order.")],
    out: Annotated[Path, typer.Option(help="The folder for the certificate; made if it is not there.")],
    registry: Annotated[
        Path | None, typer.Option(help="The registry: the certificate can then be looked up and revoked.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name on the certificate instead of the student's login.")] = None,
    email: Annotated[str | None, typer.Option(help="Bind it to this e-mail, of which only a salted hash is written.")] = None,
    assessment: Annotated[str, typer.Option(help="How it was assessed: self-paced, service or instructor.")] = "instructor",
    receipts: Annotated[
        list[Path] | None, typer.Option(help="Receipts, one a line, whose hash is written; `--assessment service` needs them.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The service that judged: its did:key, or the file of its public key.")
    ] = None,
    replaces: Annotated[str | None, typer.Option(help="The id of the certificate that this one supersedes.")] = None,
    wallet: Annotated[bool, typer.Option("--wallet", help="Write ID.wallet.json too, for wallets (extra rdf).")] = False,
    passphrase_file: PassphraseFile = None,
    title: Annotated[str, typer.Option(help="The title of the lesson, to stand beside its number.")] = "",
    pass_mark: Annotated[str, typer.Option(help="The share of the points that is needed, above 0 and at most 1.")] = "0.8",
    valid_until: Annotated[str | None, typer.Option(help="Last day of validity, YYYY-MM-DD (UTC); without it, no end.")] = None,
) -> None:
    """Issue a certificate, as JSON and as SVG, to a student who passed. Writes nothing otherwise (exit 2)."""
    now = datetime.now(UTC)
    mark, until = _pass_mark(pass_mark), _last_moment(valid_until, now)
    if len(lesson) != len(results_files):
        stop(
            _("{count} --lesson and {results} --results were given: write one of each for every lesson.").format(
                count=len(lesson), results=len(results_files)
            )
        )
    outcomes = [_outcome(number, path, student, mark, pass_mark) for number, path in zip(lesson, results_files, strict=True)]
    if len(set(lesson)) != len(lesson):
        stop(_("A lesson is named twice. Nothing was written."))
    if registry is not None:
        if assessment not in ASSESSMENTS:
            stop(
                _("--assessment {assessment}: write one of {list}. Nothing was written.").format(
                    assessment=assessment, list=", ".join(ASSESSMENTS)
                )
            )
        evidence = [read(path, "the receipts") for path in receipts or []]
        if assessment == "service":
            _require_receipts(evidence, judge, student, dict(zip(lesson, (found for found, _data in outcomes), strict=True)))
        achieved = Achieved(
            learner=tidy_name(
                student if name is None else name, "--student" if name is None else "--name", credential.LONGEST_NAME
            ),
            learner_kind="userName" if name is None else "name",
            lessons=tuple(
                Passed(number, _shown(title, "--title", credential.LONGEST_NAME) if title and len(lesson) == 1 else "", *points)
                for number, points in zip(lesson, [(o.score, o.max_score) for o, _data in outcomes], strict=True)
            ),
            pass_mark=mark,
            assessment=assessment,
            course_version=course_version(),
            bank_version=bank_version(),
            files=tuple(
                [
                    File.of(_("Results of lesson {number}").format(number=number), data)
                    for number, (_found, data) in zip(lesson, outcomes, strict=True)
                ]
                + [File.of("Receipts", data) for data in evidence]
            ),
            email=email,
        )
        private = open_key(key, passphrase_file)
        if wallet:
            require_rdf()
        made, secured, data = issue_into(registry, achieved, private, now=now, valid_until=until, replaces=replaces)
        written = {out / f"{made}.json": data, out / f"{made}.svg": badge.render(secured)}
        if wallet:
            unsigned = {part: value for part, value in secured.items() if part != "proof"}
            written[out / f"{made}.wallet.json"] = file_bytes(rdf.sign(unsigned, private, credential.format_time(now)))
        _publish(out, written, [found for found, _data in outcomes], student)
        return
    if len(lesson) != 1 or email is not None or replaces is not None or receipts or wallet or assessment != "instructor":
        stop(
            _("Several lessons, --assessment, --email, --receipts, --wallet and --replaces need a --registry. Nothing written.")
        )
    outcome = outcomes[0][0]
    award = Award(
        learner=_shown(student if name is None else name, "--student" if name is None else "--name", credential.LONGEST_NAME),
        learner_kind="userName" if name is None else "name",
        lesson=lesson[0],
        title=_shown(title, "--title", credential.LONGEST_NAME) if title else "",
        assignment=_shown(outcome.assignment, _("the assignment's name"), credential.LONGEST_NAME),
        score=outcome.score,
        max_score=outcome.max_score,
        pass_mark=mark,
    )
    private = open_key(key, passphrase_file)
    did = did_key.did_of(ed25519.public_key(private))
    unsigned = credential.build(award, issuer=did, issued=now, valid_until=until, identifier=uuid.uuid4())
    secured = signing.sign(unsigned, private, credential.format_time(now))
    stem = unsigned["id"].removeprefix("urn:uuid:")
    files = {out / f"{stem}.json": file_bytes(secured), out / f"{stem}.svg": badge.render(secured)}
    for data in files.values():
        verdict = verify_bytes(data, issuer=did, now=now)
        if not verdict.valid:
            stop(
                _("The new certificate does not verify: {message} Nothing was written; please report this.").format(
                    message=verdict.message
                )
            )
    _publish(out, files, [outcome], student)


def _require_receipts(evidence: list[bytes], judge: str | None, student: str, outcomes: dict[str, results.Outcome]) -> None:
    """Stops where the receipts do not bear every score: a certificate that names the service rests on what it signed."""
    if judge is None or not evidence:
        stop(_("--assessment service needs --receipts and --judge, the service's did:key. Nothing was written."))
    try:
        issuer = keys.load_issuer(judge)
    except keys.KeyFileError as error:
        stop(_("--judge: {error} Nothing was written.").format(error=error))
    for number, outcome in outcomes.items():
        try:
            judged.require(b"\n".join(evidence), issuer, student, number, outcome.score)
        except judged.JudgedError as error:
            stop(_("--receipts: {error} Nothing was written.").format(error=error))


def _outcome(lesson: str, path: Path, student: str, mark: Decimal, pass_mark: str) -> tuple[results.Outcome, bytes]:
    if not re.fullmatch("[0-9]{2}", lesson):
        stop(_("--lesson {lesson}: a lesson is named by two digits, for instance 01.").format(lesson=lesson))
    data = read(path, _("the results"))
    try:
        outcome = results.outcome_of(data, student)
    except results.ResultsError as error:
        stop(_("{path}: {error} Nothing was written.").format(path=path, error=error))
    if not outcome.passed(mark):
        reached = _("{score} of {max_score} points").format(
            score=credential.format_points(outcome.score), max_score=credential.format_points(outcome.max_score)
        )
        needed = credential.format_points(mark * outcome.max_score)
        stop(
            _("{student} did not pass: {reached}, {needed} needed (--pass-mark {pass_mark}). Nothing was written.").format(
                student=student, reached=reached, needed=needed, pass_mark=pass_mark
            )
        )
    return outcome, data


def _publish(out: Path, files: dict[Path, bytes], outcomes: list[results.Outcome], student: str) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        publish(files)
    except OSError as error:
        stop(
            _("{path}: cannot be written ({strerror}). Nothing was written. Choose another --out.").format(
                path=error.filename or out, strerror=error.strerror
            )
        )
    for outcome in outcomes:
        for note in outcome.notes:
            say(_("The grader's note on {student}: {note}").format(student=student, note=text.printable(note)), error=True)
    for path in files:
        say(str(path))


def _pass_mark(value: str) -> Decimal:
    try:
        mark = Decimal(value)
    except InvalidOperation:
        mark = Decimal("NaN")
    if not mark.is_finite() or not 0 < mark <= 1 or mark != round(mark, 4):
        stop(
            _("--pass-mark {value}: write a share above 0 and at most 1 with at most four decimals, for instance 0.8.").format(
                value=value
            )
        )
    return mark


def _last_moment(day: str | None, now: datetime) -> datetime | None:
    if day is None:
        return None
    try:
        last = credential.parse_time(f"{day}T23:59:59Z")
    except ValueError:
        stop(_("--valid-until {day}: write a day as YYYY-MM-DD.").format(day=day))
    if last < now:
        stop(_("--valid-until {day}: this day is over.").format(day=day))
    return last


def _shown(value: str, where: str, longest: int) -> str:
    try:
        tidy = text.tidy(value)
    except ValueError as error:
        stop(_("{where}: {error} on a certificate. Nothing was written.").format(where=where, error=error))
    if not 1 <= len(tidy) <= longest:
        stop(
            _("{where}: it has {count} characters; a certificate takes 1 to {longest}. Nothing was written.").format(
                where=where, count=len(tidy), longest=longest
            )
        )
    return tidy
