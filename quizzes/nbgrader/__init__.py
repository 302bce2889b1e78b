"""Graded quizzes through nbgrader: assignments made from the questions, answers read as data, scores in its gradebook."""
