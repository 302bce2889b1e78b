"""The course's pages in Chromium, on a phone and on a screen, light and dark, from a server and from the disk."""

import pytest

from course import published, site
from tests.browser.pages import ARTIFACTS, NEEDS_CHROMIUM, WORST_CONTRAST, chromium, open_page
from tests.browser.test_site import serving

pytestmark = [pytest.mark.timeout(300), NEEDS_CHROMIUM]
PAGES = ("index.html", "06_what_to_keep_hot.html", "glossary.html")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s ité") / "pages"
    published.publish(site.files(site.notebooks("en"), "en", (), print), folder)
    with serving(folder) as server, chromium() as browser:
        yield folder, f"http://127.0.0.1:{server.server_address[1]}/", browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 375])
def test_a_page_is_read_and_asks_nobody(served, width, scheme):
    _folder, base, browser = served
    for name in PAGES:
        page = open_page(browser, base + name, viewport={"width": width, "height": 800}, color_scheme=scheme)
        assert page.problems == [] and all(asked.startswith((base, "data:")) for asked in page.requests)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        ratio, where = page.evaluate(WORST_CONTRAST)[0]
        assert ratio >= 4.5, where
        folder = ARTIFACTS.parent / "course-pages"
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
        page.context.close()


def test_links_go_where_they_say_from_the_disk_too(served):
    folder, _base, browser = served
    page = open_page(browser, (folder / "index.html").as_uri())
    page.get_by_role("link", name="lesson 0").first.click()
    assert page.title().startswith("0 · ") and page.problems == []
    page.locator("footer a[rel=next]").click()
    assert page.title().startswith("1 · ")
    page.get_by_role("link", name="Glossary").click()
    assert page.title().startswith("Glossary")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    page.context.close()
