"""`offload-quiz certificate …`: issue and verify certificates."""

from __future__ import annotations

import json
import re
import stat
import sys
import uuid
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from quizzes.certificates import badge, credential, did_key, ed25519, keys, results, signing, text
from quizzes.certificates.credential import Award, Credential
from quizzes.certificates.publish import publish
from quizzes.certificates.verify import LARGEST_FILE, Verdict, file_bytes
from quizzes.certificates.verify import verify as verify_bytes

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


def _say(message: str, *, error: bool = False) -> None:
    """Prints on a terminal of any encoding: what it cannot show comes as an escape, not as a crash."""
    stream = sys.stderr if error else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    typer.echo(message.encode(encoding, "backslashreplace").decode(encoding), err=error)


def _stop(message: str) -> NoReturn:
    _say(message, error=True)
    raise typer.Exit(2)


def _read(path: Path, what: str, limit: int | None = None) -> bytes:
    """The bytes of a file; of one larger than `limit` just enough to see that it is."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            _stop(f"{path}: this is not a file. Write the path of {what}.")
        with path.open("rb") as file:
            return file.read(-1 if limit is None else limit + 1)
    except FileNotFoundError:
        _stop(f"{path}: there is no such file. Write the path of {what}.")
    except OSError as error:
        _stop(f"{path}: the file cannot be read ({error.strerror}).")


@app.command()
def keygen(
    out: Annotated[Path, typer.Option(help="Where the private key goes; its public name goes beside it, to OUT.pub.")],
) -> None:
    """Make an issuer's key. Keep it with the instructor; never overwrites one."""
    try:
        did = keys.generate(out)
    except keys.KeyFileError as error:
        _stop(str(error))
    _say(f"Private key: {out} (keep it secret, and keep a copy: it cannot be made again)")
    _say(f"Public name: {keys.public_path(out)} (give it to everybody who verifies your certificates)")
    _say(did)


@app.command()
def issue(
    key: Annotated[Path, typer.Option(help="The issuer's private key, made by `keygen`.")],
    results_file: Annotated[Path, typer.Option("--results", help="What `offload-quiz grade --json` printed, in a file.")],
    student: Annotated[str, typer.Option(help="The student, as named in the results.")],
    lesson: Annotated[str, typer.Option(help="The lesson, two digits.")],
    out: Annotated[Path, typer.Option(help="The folder for the certificate; made if it is not there.")],
    name: Annotated[str | None, typer.Option(help="The name on the certificate instead of the student's login.")] = None,
    title: Annotated[str, typer.Option(help="The title of the lesson, to stand beside its number.")] = "",
    pass_mark: Annotated[str, typer.Option(help="The share of the points that is needed, above 0 and at most 1.")] = "0.8",
    valid_until: Annotated[str | None, typer.Option(help="Last day of validity, YYYY-MM-DD (UTC); without it, no end.")] = None,
) -> None:
    """Issue a certificate, as JSON and as SVG, to a student who passed. Writes nothing otherwise (exit 2)."""
    now = datetime.now(UTC)
    mark, until = _pass_mark(pass_mark), _last_moment(valid_until, now)
    if not re.fullmatch("[0-9]{2}", lesson):
        _stop(f"--lesson {lesson}: a lesson is named by two digits, for instance 01.")
    try:
        outcome = results.outcome_of(_read(results_file, "the results"), student)
    except results.ResultsError as error:
        _stop(f"{results_file}: {error} Nothing was written.")
    if not outcome.passed(mark):
        reached = f"{credential.format_points(outcome.score)} of {credential.format_points(outcome.max_score)} points"
        needed = credential.format_points(mark * outcome.max_score)
        _stop(f"{student} did not pass: {reached}, {needed} needed (--pass-mark {pass_mark}). Nothing was written.")
    award = Award(
        learner=_shown(student if name is None else name, "--student" if name is None else "--name", credential.LONGEST_NAME),
        learner_kind="userName" if name is None else "name",
        lesson=lesson,
        title=_shown(title, "--title", credential.LONGEST_NAME) if title else "",
        assignment=_shown(outcome.assignment, "the assignment's name", credential.LONGEST_NAME),
        score=outcome.score,
        max_score=outcome.max_score,
        pass_mark=mark,
    )
    try:
        private = keys.load_private(key)
    except keys.KeyFileError as error:
        _stop(f"{error} Nothing was written.")
    did = did_key.did_of(ed25519.public_key(private))
    unsigned = credential.build(award, issuer=did, issued=now, valid_until=until, identifier=uuid.uuid4())
    secured = signing.sign(unsigned, private, credential.format_time(now))
    stem = unsigned["id"].removeprefix("urn:uuid:")
    files = {out / f"{stem}.json": file_bytes(secured), out / f"{stem}.svg": badge.render(secured)}
    for data in files.values():
        verdict = verify_bytes(data, issuer=did, now=now)
        if not verdict.valid:
            _stop(f"The new certificate does not verify: {verdict.message} Nothing was written; please report this.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        publish(files)
    except OSError as error:
        _stop(f"{error.filename or out}: cannot be written ({error.strerror}). Nothing was written. Choose another --out.")
    for note in outcome.notes:
        _say(f"The grader's note on {student}: {text.printable(note)}", error=True)
    for path in files:
        _say(str(path))


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="The certificate, .json or .svg.")],
    issuer: Annotated[str | None, typer.Option(help="The issuer you trust: a did:key, or the file of a public key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify a certificate, offline. Exit 0: whole. Exit 1: altered, foreign or out of its time. Exit 2: could not look."""
    try:
        trusted = None if issuer is None else keys.load_issuer(issuer)
    except keys.KeyFileError as error:
        _stop(f"--issuer: {error}")
    verdict = verify_bytes(_read(file, "a certificate", LARGEST_FILE), issuer=trusted, now=datetime.now(UTC))
    if as_json:
        typer.echo(json.dumps(_report(verdict)))
    else:
        _explain(file, verdict)
    raise typer.Exit(0 if verdict.valid else 1)


def _report(verdict: Verdict) -> dict[str, object]:
    report: dict[str, object] = {
        "valid": verdict.valid,
        "code": verdict.code,
        "message": verdict.message,
        "issuer_checked": verdict.issuer_checked,
    }
    # What stands in a refused certificate is not repeated: a program that reads this must not take it for true.
    if verdict.valid and verdict.certificate is not None:
        report |= {key.replace(" ", "_"): value for key, value in _facts(verdict.certificate).items()}
    return report


def _facts(certificate: Credential) -> dict[str, str]:
    evidence = certificate.evidence[0]
    facts = {
        "id": certificate.id,
        "issued to": certificate.learner,
        "achievement": certificate.name,
        "result": certificate.points,
        "assessed": evidence.narrative,
        "limits": evidence.description,
        "valid from": certificate.validFrom,
    }
    if certificate.validUntil is not None:
        facts["valid until"] = certificate.validUntil
    return facts | {"issuer": certificate.issuer.id}


def _explain(file: Path, verdict: Verdict) -> None:
    if not verdict.valid or verdict.certificate is None:
        _say(f"NOT VALID: {file}")
        _say(verdict.message)
        return
    _say(f"{'VALID' if verdict.issuer_checked else 'WHOLE'}: {file}")
    _say(verdict.message)
    for label, value in _facts(verdict.certificate).items():
        _say(f"  {label + ':':<13}{value}")
    if verdict.issuer_checked:
        _say("The key is the one you named with --issuer. Whether the issuer took the certificate back later was not checked.")
    else:
        _say(
            "NOT CHECKED: who holds this key. Anybody can make one. Get the issuer's key from the issuer, not from this file, "
            "and verify again with --issuer. Whether the issuer took the certificate back later was not checked either."
        )


def _pass_mark(value: str) -> Decimal:
    try:
        mark = Decimal(value)
    except InvalidOperation:
        mark = Decimal("NaN")
    if not mark.is_finite() or not 0 < mark <= 1 or mark != round(mark, 4):
        _stop(f"--pass-mark {value}: write a share above 0 and at most 1 with at most four decimals, for instance 0.8.")
    return mark


def _last_moment(day: str | None, now: datetime) -> datetime | None:
    if day is None:
        return None
    try:
        last = credential.parse_time(f"{day}T23:59:59Z")
    except ValueError:
        _stop(f"--valid-until {day}: write a day as YYYY-MM-DD.")
    if last < now:
        _stop(f"--valid-until {day}: this day is over.")
    return last


def _shown(value: str, where: str, longest: int) -> str:
    try:
        tidy = text.tidy(value)
    except ValueError as error:
        _stop(f"{where}: {error} on a certificate. Nothing was written.")
    if not 1 <= len(tidy) <= longest:
        _stop(f"{where}: it has {len(tidy)} characters; a certificate takes 1 to {longest}. Nothing was written.")
    return tidy
