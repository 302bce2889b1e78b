"""A small bank with a known key, and learners who send answers to it."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
DID = did_key.did_of(ed25519.public_key(KEY))
ADA, BOB = "ada-token-of-enough-length", "bob-token-of-enough-length"
BANK = """
lesson: "01"
title: A small bank
questions:
  - {id: g01-secret-c, name: q1, kind: one, prompt: "Which?", points: 2, reread: Here, choices: [
      {id: a, text: "4", correct: false, misconception: weights-are-all, explanation: "CANARY-A the weight alone."},
      {id: b, text: "8", correct: false, misconception: weights-are-all, explanation: "CANARY-B."},
      {id: c, text: "16", correct: true, explanation: "CANARY-C four times four."}]}
  - {id: g01-many, name: q2, kind: several, prompt: "Which of these?", choices: [
      {id: a, text: "one", correct: true, explanation: "CANARY-2A."},
      {id: b, text: "two", correct: false, misconception: weights-are-all, explanation: "CANARY-2B."},
      {id: c, text: "three", correct: true, explanation: "CANARY-2C."}]}
  - {id: g01-bytes, name: q3, kind: number, prompt: "Bytes of {n} billion?", unit: bytes, tolerance: 0.01,
     hints: ["CANARY-H1 bytes of one of the {n} billion", "CANARY-H2 both moments are float32"],
     variants: {n: [3, 5, 7, 11]}, value: {formula: "8 * n * 1e9"}, explanation: "CANARY-3 eight bytes."}
  - {id: g01-pairs, name: q4, kind: match, prompt: "Which belongs to which?", pairs: [
      {id: u, left: up, right: down, explanation: "CANARY-4U.", misconception: weights-are-all},
      {id: v, left: left, right: right, explanation: "CANARY-4V.", misconception: weights-are-all}]}
"""


class Learner:
    def __init__(self, client, token=ADA):
        self.client, self.headers, self.count = client, {"Authorization": f"Bearer {token}"}, 0

    def lesson(self, **query):
        return self.client.get("/lessons/01", headers=self.headers, params=query)

    def question(self, name, **query):
        (found,) = [question for question in self.lesson(**query).json()["questions"] if question["name"] == name]
        return found

    def hint(self, question, hint=1, cost=0.25, attempt=1, **more):
        content = {"question": question, "attempt": attempt, "hint": hint, "cost": cost}
        return self.client.post("/lessons/01/hints", headers=self.headers, json=content | more)

    def send(self, question, answer, attempt=1, nonce=None, **more):
        self.count += 1
        content = {"question": question, "attempt": attempt, "answer": answer, "nonce": nonce or f"nonce-{self.count:04d}"}
        return self.client.post("/lessons/01/answers", headers=self.headers, json=content | more)
