"""From a graded class to the item analysis: the reader, the command, and classes too small or too alike to say anything."""

import csv
import io
import itertools
import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from quizzes.analysis import analyse, language_gap, rows, smallest_p
from quizzes.analysis_plots import drawn_figure, languages_figure
from quizzes.analysis_read import AnalysisError, read
from quizzes.analysis_report import sentences, to_csv, to_html, to_json
from quizzes.cli import app
from quizzes.nbgrader.course import build_assignment, grade
from tests.hostile.classroom import RIGHT, WRONG, hand_in, with_answers


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """(results file, gradebook): one right in English, two wrong in Korean, one blank, one folder that is no student's."""
    root = tmp_path_factory.mktemp("a class à part")
    blank = json.loads(build_assignment(root, "01").read_bytes())
    for student, answers in {"ada": RIGHT, "ben": WRONG, "cai": WRONG, "dov": {}, "=1+1": RIGHT}.items():
        hand_in(root, student, json.dumps(with_answers(blank, answers)).encode())
    results = root / "results.json"
    results.write_text(json.dumps(grade(root, "01").to_json()))
    (root / "students.csv").write_text('id,language\nada,en\n"ben",ko\ncai,ko\ndov,en\n')
    return results, root / "gradebook.db"


def test_a_graded_class_is_read_with_choices_misconceptions_and_languages(course):
    found = {(row.learner, row.question): row for row in read(*course)}
    assert {learner for learner, _ in found} == {"ada", "ben", "cai", "dov"} and len(found) == 12
    by_name = {learner: [row for (who, _), row in found.items() if who == learner] for learner in ("ada", "ben", "dov")}
    assert [row.share for row in by_name["ada"]] == [1, 1, 1]
    assert [row.picked for row in by_name["ada"]] == [("c",), ("a", "c", "e"), ("48 GB",)]
    assert [row.picked[0] for row in by_name["ben"]] == ["a", "b", "96 GB"] and all(
        r.misconceptions for r in by_name["ben"][:1]
    )
    assert {row.picked for row in by_name["dov"]} == {("(no answer)",)}
    assert {row.learner: row.language for row in found.values()} == {"ada": "en", "ben": "ko", "cai": "ko", "dov": "en"}


def test_the_command_prints_one_object_and_writes_a_page_without_a_name(course, tmp_path):
    page, table = tmp_path / "report.html", tmp_path / "items.csv"
    command = ["analyse", str(course[0]), "--gradebook", str(course[1]), "--json", "--out", str(page), "--csv", str(table)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    items = json.loads(done.stdout)["items"]
    assert [item["facility"] for item in items] == [0.25, 0.25, 0.25]
    assert items[0]["drew"] == {"c": 1, "a": 2, "(no answer)": 1}
    assert all(item["too_few"] and item["gaps"][0]["too_few"] for item in items)
    text = page.read_text()
    assert "too few learners" in text and "(right)" in text and "cdn.plot.ly" not in text.split("<body>")[0]
    assert not any(f'"{name}"' in text.split("Plotly.newPlot")[-1] for name in ("ada", "ben", "cai"))
    assert len(list(csv.reader(io.StringIO(table.read_text())))) == 4


@pytest.mark.parametrize(
    "content, said",
    [
        ('{"assignment": "quiz-01", "results": [{"student": "ada", "score": 1}]}', "add --gradebook"),
        ('{"results": 3}', "holds no results"), ("[1]", "no list of objects"), ("learner,question\nada,q1\n", "row 1"),
        ('[{"learner": "a", "question": "q", "share": NaN}]', "row 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_analysed_says_what_is_needed(tmp_path, content, said):
    path = tmp_path / "results"
    path.write_text(content)
    done = CliRunner().invoke(app, ["analyse", str(path)])
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.stderr
    with pytest.raises(AnalysisError, match="cannot be read"):
        read(tmp_path / "nowhere")


def test_results_of_exercises_need_no_gradebook(tmp_path):
    path = tmp_path / "results.json"
    marks = [{"exercise": "adamw-step", "passed": 3, "cases": 4}, {"exercise": "pipeline-order", "passed": 0, "cases": 2}]
    path.write_text(json.dumps({"results": [{"student": "ada", "exercises": marks}, {"student": "ben", "exercises": []}]}))
    assert [(row.question, row.share) for row in read(path)] == [("adamw-step", 0.75), ("pipeline-order", 0.0)]


def test_ids_with_commas_and_formulas_pass_through_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('learner,question,share,picked\n"Doe, ""Jr""",q1,1,=1+1\n=cmd,q1,0,"<b>x</b>"\n')
    items = analyse(read(path))
    assert items[0].learners == 2 and items[0].drew == {"=1+1": 1, "<b>x</b>": 1}
    line = list(csv.reader(io.StringIO(to_csv(items))))[1]
    assert line[4] == "'=1+1: 1; <b>x</b>: 1"
    assert "<b>x</b>" not in to_html(items, {}) and "&lt;b&gt;x&lt;/b&gt;" in drawn_figure(items[0]).data[0].x[0]
    shown = drawn_figure(items[0])._repr_mimebundle_()["text/html"]
    assert "<b>x</b>" not in shown and "&lt;b&gt;x&lt;/b&gt;" in shown


def _class(shares, questions=2, language=None):
    return rows(
        {"learner": f"l{n}", "question": f"q{q}", "share": share, "language": language(n) if language else ""}
        for q in range(questions)
        for n, share in enumerate(shares)
    )


@pytest.mark.parametrize(
    "shares, questions, said",
    [([], 1, "no answers"), ([1.0], 1, "too few"), ([1.0] * 12, 2, "tells nobody apart"), ([0.0] * 12, 1, "nobody is right")],
    ids=["nobody", "one learner", "all right", "all blank"],
)
def test_a_class_that_says_nothing_is_told_so_in_every_form(shares, questions, said):
    items = analyse(_class(shares, questions))
    assert said in " ".join(sentences(items))
    json.dumps(to_json(items), allow_nan=False)
    to_html(items, {})
    assert len(list(csv.reader(io.StringIO(to_csv(items))))) == 1 + (questions if shares else 0)


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_the_exact_test_agrees_with_counting_every_way_to_be_right(of, other_of, data):
    right, other = data.draw(st.integers(0, of)), data.draw(st.integers(0, other_of))
    ways = Counter(sum(n < of for n in some) for some in itertools.combinations(range(of + other_of), right + other))
    expected = sum(count for count in ways.values() if count <= ways[right]) / sum(ways.values())
    assert language_gap(right, of, other, other_of) == pytest.approx(expected)
    assert smallest_p(of, other_of) <= expected * (1 + 1e-9)


def test_too_few_and_chance_and_gap_are_told_apart():
    def gaps(each, wrong_in_korean):
        shares = [0.0 if n % 2 and n // 2 < wrong_in_korean else 1.0 for n in range(2 * each)]
        return analyse(_class(shares, 1, lambda n: "ko" if n % 2 else "en"))[0].gaps[0]

    # Complete separation of n and n learners has p = 2 / C(2n, n): 2/252 for 5, under 0.01, and 2/70 for 4.
    assert gaps(4, 4).too_few and not gaps(4, 4).flagged and gaps(4, 4).p == pytest.approx(2 / 70)
    assert gaps(5, 5).flagged and not gaps(5, 5).too_few
    assert not gaps(5, 1).flagged and not gaps(5, 1).too_few


def test_the_correction_counts_every_question():
    """A gap of p = 2/252 is one to look at alone, and what twenty questions give by chance."""
    alone = [
        {"learner": f"{w}{n}", "question": "q0", "share": float(w == "en"), "language": w}
        for w in ("en", "ko")
        for n in range(5)
    ]
    more = [
        {"learner": f"{w}{n}", "question": f"q{q}", "share": 1.0, "language": w}
        for q in range(1, 20)
        for w in ("en", "ko")
        for n in range(5)
    ]
    assert analyse(rows(alone))[0].gaps[0].flagged
    together = analyse(rows(alone + more))
    assert not any(gap.flagged for item in together for gap in item.gaps)


def test_holm_flags_what_bonferroni_would_leave():
    """Two questions, p = 2/3432 and 2/252 with m = 2: the second is held against 0.01, not against 0.005."""
    records = [
        {"learner": f"{w}{n}", "question": f"q{q}", "share": float(w == "en"), "language": w}
        for q, each in ((0, 7), (1, 5)) for w in ("en", "ko") for n in range(each)
    ]  # fmt: skip
    assert math.isclose(2 / math.comb(10, 5), 0.0079, abs_tol=1e-4)
    assert [item.gaps[0].flagged for item in analyse(rows(records))] == [True, True]


def test_the_figure_of_languages_joins_what_is_flagged():
    items = analyse(_class([1.0, 0.0] * 8, 1, lambda n: "ko" if n % 2 else "en"))
    traces = {trace.name: (list(trace.x), list(trace.y)) for trace in languages_figure(items).data}
    assert traces == {"gap: read both texts": ([1.0, 0.0], ["q0", "q0"]), "en": ([1.0], ["q0"]), "ko": ([0.0], ["q0"])}


def test_variants_of_a_question_are_counted_apart():
    records = [{"learner": n, "question": "q", "share": n % 2, "variant": "ab"[n > 1]} for n in range(5)]
    assert analyse(rows(records))[0].by_variant == {"a": (2, 0.5), "b": (3, pytest.approx(1 / 3))}
