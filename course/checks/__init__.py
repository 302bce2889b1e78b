"""The contract of each lesson's exercise. Solutions are not here."""
