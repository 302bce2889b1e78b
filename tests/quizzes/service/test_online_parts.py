"""Widgets, records, addresses and receipts.json of the graded quiz, with a stand-in for the service in this process."""

from __future__ import annotations

import json
import ssl
import threading
from datetime import datetime, timedelta

import pytest
from ipywidgets.widgets.widget import _instances

from quizzes.online import desk, receipts_file, sending
from quizzes.online import quiz as online
from quizzes.online.access import Access, AccessError
from quizzes.online.board import OnlineBoard
from quizzes.online.quiz import OnlineQuiz
from quizzes.progress import Progress
from quizzes.service import client as client_module
from quizzes.service.body import parse
from quizzes.service.client import Client, Refused, Unknown, Unreached
from quizzes.service.errors import encode
from quizzes.service.judging import Judge
from tests.quizzes.service.running import PATIENCE
from tests.quizzes.service.small import KEY

RUN = "0" * 32


class Service:
    """Judges as the real one does, in this process; `open` lets replies out, `down` refuses connections."""

    def __init__(self, folder, monkeypatch):
        self.judge = Judge(folder, KEY, 2)
        self.replies, self.down = [], False
        self.open = threading.Event()
        self.open.set()
        monkeypatch.setattr(Client, "lesson", lambda client, lesson, locale="en": self.lesson(locale))
        monkeypatch.setattr(Client, "send", lambda client, lesson, content: self.send(content))

    def lesson(self, locale):
        if self.down:
            raise Unreached("Nobody is there.")
        used = {}
        for reply in self.replies:
            count, best = used.get(reply["id"], (0, 0.0))
            used[reply["id"]] = (count + 1, max(best, reply["share"]))
        return {"lesson": "01", "title": "A small bank", "learner": "ada", "run": RUN, "issuer": self.judge.issuer,
                "questions": json.loads(json.dumps(self.judge.shown("01", "ada", locale, used))),
                "answers": [{k: v for k, v in reply.items() if k != "id"} for reply in self.replies]}  # fmt: skip

    def send(self, content):
        if self.down:
            raise Unreached("Nobody is there.")
        assert self.open.wait(PATIENCE)
        judged = self.judge.judge("ada", RUN, "01", parse(encode(content)))
        reply = json.loads(judged.reply)
        if judged.recorded and all(reply["nonce"] != held["nonce"] for held in self.replies):
            self.replies.append(reply | {"id": judged.question})
        return reply


@pytest.fixture
def service(bank, monkeypatch):
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", "ada-token-of-enough-length")
    monkeypatch.delenv("OFFLOAD_QUIZ_URL", raising=False)
    monkeypatch.setattr(sending, "PAUSES", (0.05,))
    monkeypatch.setattr(online, "SECONDS", PATIENCE)
    monkeypatch.setattr(online, "_open", {})
    yield Service(bank, monkeypatch)
    for quiz in online._open.values():
        quiz._sender.end()


@pytest.fixture
def quiz(service):
    quiz = OnlineQuiz("01", service="http://127.0.0.1:9")
    assert quiz._desk.wait(PATIENCE)
    return quiz


@pytest.fixture
def board(quiz):
    quiz._board = OnlineBoard(quiz)
    return quiz._board


def settle(quiz):
    assert quiz._desk.wait(PATIENCE) and not quiz._desk.trouble


def test_a_click_sends_and_the_verdict_comes_by_itself(service, quiz, board):
    service.open.clear()
    card = board.cards["q1"]
    {box.description[0]: box for box in card.controls}["a"].value = True
    card.button.click()
    assert "… Sending" in card.verdict.value and 'role="note"' in card.verdict.value
    service.open.set()
    settle(quiz)
    assert "✘ Not yet" in card.verdict.value and 'role="alert"' in card.verdict.value and "Attempt 2" in card.place.value
    {box.description[0]: box for box in card.controls}["c"].value = True  # takes the place of a
    card.button.click()
    settle(quiz)
    assert "CANARY-C" in card.verdict.value and card.button.disabled and "2 of 5 points" in board.state.value


def test_new_numbers_keep_the_button_and_close_what_is_not_shown(service, quiz, board):
    card = board.cards["q3"]
    before, button = card.asked.children, card.button
    others = len(_instances)
    card.controls[0].value = "1,2,3"
    assert quiz._desk.sheet.drafts == {"q3": "1,2,3"}
    button.click()
    settle(quiz)
    assert "no attempt used" in card.verdict.value and card.controls[0].value == "1,2,3" and card.asked.children == before
    card.controls[0].value = "1 GB"
    button.click()
    settle(quiz)
    assert card.asked.children != before and card.controls[0].value == "" and card.button is button
    assert "The numbers are new" in card.verdict.value and quiz.named("q3").prompt in card.asked.children[0].value
    card.controls[0].value = "40 GB"
    assert quiz._desk.sheet.drafts == {"q3": "40 GB"}, "the new box is listened to"
    button.click()
    settle(quiz)
    assert card.button.disabled and len(quiz.receipts()) == 2
    assert len(_instances) <= others + 1, "widgets of the old numbers are closed"


def test_the_board_fills_when_the_service_comes(service, monkeypatch):
    service.down = True
    quiz = OnlineQuiz("01", service="http://127.0.0.1:9")
    assert quiz._desk.wait(PATIENCE) and "are not here yet. Nobody is there." in str(quiz)
    quiz._board = board = OnlineBoard(quiz)
    assert not board.cards and 'role="alert"' in board.state.value
    quiz.answers["q2"] = "a, c"
    assert quiz._desk.sheet.drafts == {"q2": "a, c"}
    service.down = False
    board.again.click()
    assert quiz._desk.wait(PATIENCE)
    for _ in range(100):  # a look at `trouble` may come before the fetch that was asked for
        if board.cards:
            break
        quiz.send(PATIENCE)
    assert list(board.cards) == ["q1", "q2", "q3", "q4"] and "0 of 5 points" in board.state.value


def test_every_control_is_named_and_nothing_is_told_by_colour(quiz, board):
    for card in board.cards.values():
        assert all(control.description for control in [*card.controls, card.button, card.sure, *card.help.buttons])
        assert card.box.children == (card.asked, card.sure, card.help.box, card.place, card.button, card.verdict)
    described = [button.description for button in board.cards["q3"].help.buttons]
    assert described == ["Hint 1 to q3 (costs 25%)", "Hint 2 to q3 (costs 25%)"] and not board.cards["q1"].help.buttons


def test_an_empty_box_sends_nothing(service, quiz, board):
    board.cards["q2"].button.click()
    assert "Nothing was sent" in board.cards["q2"].verdict.value and not service.replies


def test_what_is_typed_in_a_cell_fits_the_box_or_leaves_it(service, quiz, board):
    service.down = True
    for name, answer in {"q1": "c", "q2": "a, c", "q3": 40_000_000_000, "q4": "u: 1, v: 2"}.items():
        quiz.answers[name] = answer
    again = OnlineBoard(quiz)
    assert [box.value for box in again.cards["q1"].controls].count(True) == 1
    assert again.cards["q3"].controls[0].value == "40000000000"
    service.down = False
    quiz.send(PATIENCE)
    settle(quiz)
    assert quiz.score == (4.0, 5.0) or quiz.score == (5.0, 5.0)  # 40 GB is right for one of the four numbers
    assert OnlineBoard(quiz).cards["q4"].controls[0].value == "1"


def test_a_reply_that_the_service_did_not_sign_is_not_kept(service, quiz, monkeypatch):
    real = service.send
    monkeypatch.setattr(Client, "send", lambda client, lesson, content: real(content) | {"score": 2.0})
    monkeypatch.setattr(service, "lesson", lambda locale: {**Service.lesson(service, locale), "answers": []})
    quiz.answers["q1"] = "a"
    assert "cannot be relied on" in str(quiz) and quiz.receipts() == [] and quiz.score[0] == 0.0


@pytest.mark.parametrize("code", ["forbidden", "no-page", "no-lesson", "refused"])
def test_a_refusal_that_is_not_of_the_answer_keeps_it(service, quiz, monkeypatch, code):
    def refuse(client, lesson, content):
        raise Refused(code, "Not here", 403)

    with monkeypatch.context() as patch:
        patch.setattr(Client, "send", refuse)
        quiz.answers["q1"] = "c"
        assert "Not sent yet, kept here" in str(quiz) and "The service refuses: Not here." in str(quiz)
    quiz.send(PATIENCE)
    for _ in range(100):
        if quiz.receipts():
            break
        quiz.send(PATIENCE)
    assert quiz.score[0] == 2.0


def test_a_clock_that_is_wrong_is_said(quiz, monkeypatch):
    class Later(datetime):
        @classmethod
        def now(cls, zone=None):
            return super().now(zone) + timedelta(hours=1)

    quiz.answers["q1"] = "a"
    assert "clock" not in str(quiz)
    monkeypatch.setattr(desk, "datetime", Later)
    quiz.answers["q1"] = "c"
    assert "The clock of this computer is 60 minutes off the service's" in str(quiz) and quiz.score[0] == 2.0


@pytest.mark.parametrize("why, said", [("certificate has expired", "look at its clock"), ("self-signed", "not trusted here")])
def test_a_certificate_that_is_refused_is_said(why, said):
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = why
    assert said in client_module._short(error)


def test_a_service_that_says_nonsense_stops_nothing(service, quiz, monkeypatch):
    for more in ({"answers": 5}, {"questions": [5, {}, {"name": "<b>"}], "answers": [None, {"understood": True}]}):
        with monkeypatch.context() as patch:
            patch.setattr(service, "lesson", lambda locale, more=more: Service.lesson(service, locale) | more)
            quiz._sender.load()
            quiz.answers["q1"] = "a" if "questions" not in more else "c"
    quiz._sender.load()
    quiz.send(PATIENCE)
    assert "cannot be shown by this version" in str(quiz) and len(service.replies) <= 2


def test_progress_keeps_judged_answers_through_export_and_import(quiz, tmp_path, monkeypatch):
    quiz.answers["q1"] = "c"
    Progress().export(tmp_path / "copy.json")
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "other.json"))
    assert Progress().take_in(tmp_path / "copy.json") == [] and Progress().take_in(tmp_path / "copy.json") == []
    content = Progress().read()
    assert content["version"] == 3 and [reply["question"] for reply in content["judged"][RUN]["replies"]] == ["q1"]


# --- receipts.json ----------------------------------------------------------------------------------------------------


def test_receipts_are_handed_in_as_a_list(quiz, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "nothing was written" in quiz.hand_in() and not (tmp_path / "receipts.json").exists()
    quiz.answers["q1"] = "c"
    (tmp_path / "receipts.json").write_text('["of another lesson"]')
    assert "holds 2 receipts, 1 of them new" in quiz.hand_in()
    assert "holds 2 receipts, 0 of them new" in quiz.hand_in(tmp_path)
    assert json.loads((tmp_path / "receipts.json").read_text()) == ["of another lesson", *quiz.receipts()]
    assert "holds 1 receipts" in quiz.hand_in(tmp_path / "mine.json")
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["mine.json", "receipts.json"]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[" * 100_000, "\x00"])
def test_a_file_that_is_no_list_of_receipts_is_left_alone(quiz, tmp_path, text):
    quiz.answers["q1"] = "c"
    place = tmp_path / "receipts.json"
    place.write_text(text)
    assert "is no list of receipts; nothing was written" in quiz.hand_in(place)
    assert place.read_text() == text
    assert "was not written" in quiz.hand_in(tmp_path / "nowhere" / "receipts.json")


def test_two_that_hand_in_at_once_lose_nothing(tmp_path, monkeypatch):
    place, real = tmp_path / "receipts.json", receipts_file.publish
    others = [b'["theirs"]', b'["theirs", "and more"]']

    def publish(files):
        real(files)
        if others:
            place.write_bytes(others.pop())  # written by another that had read before

    monkeypatch.setattr(receipts_file, "publish", publish)
    assert "receipts" in receipts_file.hand_in(["mine"], tmp_path)
    assert set(json.loads(place.read_text())) >= {"theirs", "mine"}


# --- the address and the token ----------------------------------------------------------------------------------------


def test_a_token_goes_only_to_the_service_that_it_was_given_for():
    hub = {"OFFLOAD_QUIZ_URL": "https://hub/services/quiz", "JUPYTERHUB_API_TOKEN": "of-the-hub"}
    assert Access(environ=hub).client().token == "of-the-hub"
    assert Access("https://hub/services/quiz/", hub).client().token == "of-the-hub"
    for service, environ in [("https://elsewhere", hub), ("https://elsewhere", {"JUPYTERHUB_API_TOKEN": "of-the-hub"})]:
        with pytest.raises(Unknown, match="no token"):
            Access(service, environ).client()
    assert Access("https://class.example", {"OFFLOAD_QUIZ_TOKEN": " mine "}).client().token == "mine"


def test_a_token_is_asked_for_and_nobody_there_is_said():
    access, asked = Access("https://class.example", {}), []
    assert access.ask(lambda prompt: asked.append(prompt) or "typed") == "" and access.client().token == "typed"
    assert access.ask(lambda prompt: asked.append(prompt)) == "" and len(asked) == 1 and "class.example" in asked[0]
    for error in (EOFError, KeyboardInterrupt, NotImplementedError):

        def nobody(prompt, error=error):
            raise error

        assert "OFFLOAD_QUIZ_TOKEN" in Access("https://class.example", {}).ask(nobody)


@pytest.mark.parametrize(
    "service",
    ["", "class.example", "ftp://x", "https://", "http://class.example", "https://me:secret@x", "http://[", "file:///x"],
)
def test_an_address_that_cannot_be_used(service):
    if service == "":
        return  # the service of this machine
    with pytest.raises(AccessError) as told:
        Access(service, {})
    assert "secret" not in str(told.value)
