"""Code exercises: run isolated, compared in the parent. No code of a learner runs in the process that holds the tests."""
