"""The question bank in other programs' formats: Moodle GIFT, Moodle XML, and QTI 2.2 and 3.0 packages.

`formats.export` writes questions, `formats.read_file` reads them; what a format can't hold goes into a note that other
programs pass over (`notes`), and into a report that names question and field (`report`).
"""
