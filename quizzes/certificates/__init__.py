"""Certificates of passed quizzes: Open Badges 3.0 credentials that a stranger can verify offline.

`results` says who passed, `credential` what the certificate states, `signing` proves it, `badge` draws it and `verify` checks
a file byte for byte. All of these are pure; `keys`, `publish` and `cli` are where files are touched.
"""
