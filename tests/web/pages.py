"""Every page, once: what the checks of accessibility and privacy, and the screenshots, go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import expect

from blowfishdb import Policy
from blowfishdb.core import graphs
from blowfishdb.language.policy_file import read_policy
from tests.web.site import Site


@dataclass(frozen=True)
class Page:
    """A page as one role sees it.

    ``path`` may contain ``{a}``, ``{b}`` and ``{c}``, the numbers of the first three answers; ``act`` does
    what leads further than an address can.
    """

    name: str
    role: str | None
    path: str
    act: Callable[[Any, Site], None] | None = None
    status: int = 200

    def show(self, window: Any, site: Site) -> None:
        """Go there, and wait until everything is drawn."""
        response = window.goto(self.path.format(**dict(zip("abc", site.answers, strict=False))))
        assert response.status == self.status, f"{self.name}: {response.status}"
        if self.act is not None:
            self.act(window, site)
        expect(window.locator("figure.chart .drawing:not([data-drawn])")).to_have_count(0)


def _look_at_columns(window: Any, site: Site) -> None:
    window.get_by_label("File or database address").fill(str(site.folder / "people.csv"))
    window.get_by_role("button", name="Look at the columns", exact=True).click()
    window.get_by_role("button", name="Declare the dataset").wait_for()


def _forget_to_confirm(window: Any, site: Site) -> None:
    _look_at_columns(window, site)
    window.get_by_role("button", name="Declare the dataset").click()
    window.locator("tr.column.wrong").first.wait_for()


def _wrong_source(window: Any, site: Site) -> None:
    window.get_by_label("File or database address").fill("nowhere.csv")
    window.get_by_role("button", name="Look at the columns", exact=True).click()
    window.locator(".alert.bad").wait_for()


AREA = """\
blowfishdb: policy/1
dataset: salaries
hide: columns together
areas:
  - {columns: [salary, age], hide within cells: "5"}
columns:
  region: {hide: everything}
"""


def _area(window: Any, site: Site) -> None:
    """A draft that no sentence about a single column can say, for as long as the page needs it."""
    before = site.workspace.draft("salaries")
    site.workspace.save_draft("salaries", read_policy(AREA, before.domain, dataset="salaries"))
    try:
        window.reload()
    finally:
        site.workspace.save_draft("salaries", before)


def _loosen(window: Any, site: Site) -> None:
    """A policy that hides less, published after answers were given: the one before stays promised."""
    if not site.workspace.kept("salaries"):
        salaries = site.workspace["salaries"]
        salary = salaries.schema["salary"]
        looser = Policy.by_column(
            salaries.schema, {"salary": graphs.Threshold(salary.size, salary.threshold(200))}
        )
        site.workspace.publish("salaries", looser, confirm=True)
    window.reload()


def _ask_adaptive(window: Any, site: Site) -> None:
    """An answer whose error nobody promised; asked again it is the same one."""
    analyst = site.workspace.as_user("analyst")
    asked = analyst["salaries"].question("histogram(age, bins=16)").spend("0.2").using("adaptive")
    window.goto(f"/answers/{asked.ask().number}")


def _ask_means(window: Any, site: Site) -> None:
    """Means and counts in groups, of which one has too few rows to say."""
    analyst = site.workspace.as_user("analyst")
    asked = analyst["salaries"].question("mean(salary), count() by region, age(bins=3)").spend("0.2")
    window.goto(f"/answers/{asked.ask().number}")


def _plan(window: Any, site: Site) -> None:
    """Two questions on the plan, from the page where they are asked."""
    for query in ("column=age&shape=histogram&error=60", "column=age&shape=cumulative&error=60"):
        window.goto(f"/datasets/salaries/ask?{query}")
        window.get_by_role("button", name="Put it on the plan").click()
        window.locator("table.plan").wait_for()


def _request_more(window: Any, site: Site) -> None:
    """A request that waits in the curator's inbox."""
    desk = site.workspace.desk
    if not desk.requests():
        desk.request("salaries", "analyst", "The yearly report needs every region within ±20.")
    window.reload()


def _card(window: Any, site: Site) -> None:
    """An answer for whoever has its address."""
    desk = site.workspace.desk
    desk.allow_cards("salaries", True, "curator")
    window.goto(f"/cards/{desk.make_card(site.answers[2], 'salaries', 'analyst').id}")


def _verify(window: Any, site: Site) -> None:
    _card(window, site)
    window.get_by_role("link", name="Does it match the books?").click()


def _dashboard(window: Any, site: Site) -> None:
    """All answers on one page."""
    made = site.workspace.desk.make_dashboard("Pay and place", site.answers, "analyst")
    window.goto(f"/dashboards/{made.id}")


def _count(window: Any, site: Site) -> None:
    """One number."""
    analyst = site.workspace.as_user("analyst")
    asked = analyst["salaries"].question("count() where age >= 40").accurate_to(50)
    window.goto(f"/answers/{asked.ask().number}")


def _heat_map(window: Any, site: Site) -> None:
    """Two columns."""
    analyst = site.workspace.as_user("analyst")
    asked = analyst["salaries"].question("histogram(salary(bins=10), age(bins=8))").accurate_to(60)
    window.goto(f"/answers/{asked.ask().number}")


def _compare_two(window: Any, site: Site) -> None:
    """Two parts of the rows, which are named by what they are."""
    salaries = site.workspace.as_user("analyst")["salaries"]
    asked = (
        salaries.question(f"histogram(age, bins=8) where region = '{region}'").accurate_to(60)
        for region in ("north", "south")
    )
    first, second = (each.ask().number for each in asked)
    window.goto(f"/compare?a={first}&b={second}")


def _synthetic_quote(window: Any, site: Site) -> None:
    """The price of a synthetic table, once the rows are counted."""
    site.workspace.as_user("analyst")["salaries"].count().spend(1).ask(max_cost=0)
    window.goto("/datasets/salaries/synthetic?column=age&column=region&epsilon=0.2")


def _synthetic_table(window: Any, site: Site) -> None:
    """One that was made."""
    _synthetic_quote(window, site)
    window.locator("section", has=window.locator("#price-title")).get_by_role("button").click()
    window.locator("#report-title").wait_for()


def _wrong_password(window: Any, _: Site) -> None:
    window.get_by_label("Name").fill("analyst")
    window.get_by_label("Password").fill("not it")
    window.get_by_role("button", name="Sign in", exact=True).click()
    window.locator(".alert.bad").wait_for()


_GROUPS = "hide.region=groups&groups.region=north%2C+south%0Aeast%2C+west"
_DRAFT = f"records=together&hide.salary=within&within.salary=10%2C000&hide.age=everything&{_GROUPS}"
_LOOSER = "records=single&hide.salary=within&within.salary=200&hide.age=everything&hide.region=everything"
_REGIONS = "records=together&hide.region=groups&column=region"
_PLACE = "records=together&place=salary&place-within=5&column=age"
_MEANS = "shape=mean&per=region%2C+age%28bins%3D3%29&least=100&error=5%2C000"
_ADAPTIVE = "column=age&shape=histogram&size=16&by=epsilon&epsilon=0.3&mechanism=adaptive"

PAGES: tuple[Page, ...] = (
    Page("door", None, "/"),
    Page("help", None, "/help"),
    Page("help-document", None, "/help/curator"),
    Page("about", "curator", "/datasets/salaries/about"),
    Page("columns-asked", "curator", "/datasets/salaries/columns"),
    Page("signin", None, "/signin"),
    Page("signin-wrong", None, "/signin", _wrong_password),
    Page("datasets-curator", "curator", "/datasets"),
    Page("datasets-analyst", "analyst", "/datasets"),
    Page("import-source", "curator", "/import"),
    Page("import-source-wrong", "curator", "/import", _wrong_source),
    Page("import-columns", "curator", "/import", _look_at_columns),
    Page("import-columns-wrong", "curator", "/import", _forget_to_confirm),
    Page("overview-curator", "curator", "/datasets/salaries"),
    Page("overview-analyst", "analyst", "/datasets/salaries"),
    Page("overview-auditor", "auditor", "/datasets/salaries"),
    Page("ask", "analyst", "/datasets/salaries/ask?error=40"),
    Page("ask-owned", "analyst", "/datasets/salaries/ask"),
    Page("ask-not-affordable", "analyst", "/datasets/salaries/ask?error=0.5"),
    Page("ask-wrong", "analyst", "/datasets/salaries/ask?column=region&shape=cumulative"),
    Page("ask-sql", "analyst", "/datasets/salaries/ask?mode=sql"),
    Page("ask-explained", "analyst", "/datasets/salaries/ask?shape=two&column=age&second=region&explain=1"),
    Page("ask-means", "analyst", f"/datasets/salaries/ask?{_MEANS}"),
    Page("made-up-rows", "analyst", "/datasets/salaries/made-up?column=age&shape=histogram"),
    Page("where-rows-are", "curator", "/datasets/salaries/rows"),
    Page("kept-rows", "curator", "/datasets/salaries/synthetic/kept"),
    Page("synthetic", "analyst", "/datasets/salaries/synthetic?column=age&column=region&epsilon=0.2"),
    Page("answers", "analyst", "/answers"),
    Page("answers-nothing-fits", "analyst", "/answers?q=nothing"),
    Page("answer", "analyst", "/answers/{a}"),
    Page("answer-bars", "curator", "/answers/{c}?raw=1"),
    Page("compare", "analyst", "/compare?a={a}&b={a}"),
    Page("compare-choose", "analyst", "/compare?a={a}"),
    Page("compare-wrong", "analyst", "/compare?a={a}&b={b}", status=422),
    Page("attack", None, "/attack?person=3"),
    Page("attack-caught", None, "/attack?person=3&noise=off"),
    Page("plan-empty", "analyst", "/plan"),
    Page("requests-analyst", "analyst", "/requests"),
    Page("cards", "curator", "/datasets/salaries/cards"),
    Page("dashboards", "analyst", "/dashboards"),
    Page("guarantee", None, "/datasets/salaries/guarantee"),
    Page("policy-published", "curator", "/datasets/salaries/policy"),
    Page("policy-draft", "curator", f"/datasets/salaries/policy?{_DRAFT}&was=records%3Dtogether"),
    Page("policy-made-up", "curator", "/datasets/salaries/policy?column=age&ask=histogram&data=made-up"),
    Page(
        "policy-wrong",
        "curator",
        "/datasets/salaries/policy?records=single&hide.salary=within&within.salary=x",
    ),
    Page("policy-area", "curator", "/datasets/salaries/policy?column=region", _area),
    Page("policy-groups", "curator", f"/datasets/salaries/policy?{_REGIONS}"),
    Page("policy-place", "curator", f"/datasets/salaries/policy?{_PLACE}"),
    Page("publish", "curator", f"/datasets/salaries/policy/publish?{_DRAFT}"),
    Page("tradeoff", "curator", "/datasets/salaries/tradeoff"),
    Page("tradeoff-point", "curator", "/datasets/salaries/tradeoff?point=within+10%2C000&data=true"),
    Page("tradeoff-made-up", "curator", "/datasets/salaries/tradeoff?point=within+10%2C000"),
    Page("tradeoff-wrong", "curator", "/datasets/salaries/tradeoff?distances=far", status=422),
    Page("start", "curator", "/datasets/salaries/start"),
    Page("budget", "curator", "/datasets/salaries/budget"),
    Page("budget-weaker", "curator", "/datasets/salaries/budget?total=9"),
    Page("budget-auditor", "auditor", "/datasets/salaries/budget"),
    Page("access", "curator", "/datasets/salaries/access"),
    Page("audit", "auditor", "/datasets/salaries/audit"),
    Page("audit-nothing-fits", "auditor", "/datasets/salaries/audit?kind=lost"),
    Page("not-found", "analyst", "/datasets/nothing", status=404),
    Page("another-role", "analyst", "/import", status=403),
    # What follows changes what others would show, so it comes last.
    Page("ask-adaptive", "analyst", f"/datasets/salaries/ask?{_ADAPTIVE}"),
    Page("answer-not-promised", "analyst", "/answers", _ask_adaptive),
    Page("answer-means", "analyst", "/answers", _ask_means),
    Page("answer-one-number", "analyst", "/answers", _count),
    Page("answer-heat-map", "analyst", "/answers", _heat_map),
    Page("compare-two", "analyst", "/answers", _compare_two),
    Page("synthetic-quote", "analyst", "/datasets/salaries/synthetic", _synthetic_quote),
    Page("synthetic-table", "analyst", "/datasets/salaries/synthetic", _synthetic_table),
    Page("plan", "analyst", "/plan", _plan),
    Page("requests", "curator", "/requests", _request_more),
    Page("card", None, "/signin", _card),
    Page("card-verified", None, "/signin", _verify),
    Page("dashboard", "analyst", "/answers", _dashboard),
    Page("publish-looser", "curator", f"/datasets/salaries/policy/publish?{_LOOSER}"),
    Page("budget-kept", "curator", "/datasets/salaries/budget", _loosen),
    Page("guarantee-kept", None, "/datasets/salaries/guarantee", _loosen),
)
