"""Where this course is published: the one place that names its repository. Pure.

The build puts `REPOSITORY` wherever a lesson says OWNER/REPO: the badge that opens the Colab lab, and the cell there that
installs the course. Whoever publishes a copy writes its name here, "ada/offload-lab", and runs `make course`.
"""

from __future__ import annotations

import re

PLACE = "OWNER/REPO"
REPOSITORY = PLACE
"""Owner and name on GitHub. As long as it is OWNER/REPO, badge and install cell lead nowhere, and the cell says so."""
_NAMED = re.compile(r"[A-Za-z0-9-]+/[\w.-]+")


def filled(text: str, repository: str = REPOSITORY) -> str:
    """`text` with the repository in its place. Raises ValueError for what is no owner and name."""
    if not _NAMED.fullmatch(repository):
        raise ValueError(f"REPOSITORY={repository!r} in course/repository.py: write owner/name, as GitHub spells it")
    return text.replace(PLACE, repository)
