"""Datasets as people use them: questions about columns, policies, budgets; wherever the data is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

from blowfishdb.adapters.copies.values import Dialect, SourceFacts, SourceKind, SourceRows
from blowfishdb.adapters.store.values import Budget, Grant, RequestKey
from blowfishdb.core.budget import AnyEpsilon, Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import InvalidInput, UnknownDataset
from blowfishdb.core.policy.codec import digest
from blowfishdb.core.policy.columns import column_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.promise import significant
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.policies import DatasetInfo, EarlierPolicy, Face, PastLoss, TableFacts
from blowfishdb.messages.questions import Terms
from blowfishdb.messages.quotes import Explanation, TogetherQuote, Tradeoff
from blowfishdb.workspace.asking import Asking, Columns, Groups, asking
from blowfishdb.workspace.gateway import Gateway

if TYPE_CHECKING:
    from blowfishdb.core.domain.tables import Tables
    from blowfishdb.language.select import SqlQuestion
    from blowfishdb.messages.curator import KeptColumns, KnownCheck, Preview, SyntheticComparison
    from blowfishdb.service.advice import Suggestions
    from blowfishdb.workspace.synthesizing import AnyColumn, Synthesizing


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """One dataset of a workspace: its columns to ask about, its policy and its budget.

    >>> adults = people.where(bf.col("age") >= 30)
    >>> adults
    <Dataset people where age >= 30>
    >>> print(adults["region"].histogram().accurate_to(50).quote())
    histogram of region (3 bins) where age >= 30 of people: costs ε = 0.135. In 95 of 100 runs every bar is
    within 50 people of the truth.
    >>> people.sql("SELECT SUM(age) FROM people WITH ERROR 1000").quote().promise
    'In 95 of 100 runs the sum is within 1,000 of the truth.'
    """

    gateway: Gateway
    name: str
    condition: Predicate = field(default_factory=Everything)

    def __repr__(self) -> str:
        """Its name and which rows are meant; what else it is would have to be looked up."""
        rows = "" if isinstance(self.condition, Everything) else f" where {self.condition}"
        return f"<Dataset {self.name}{rows}>"

    @property
    def schema(self) -> Domain:
        """The declared columns."""
        return self.gateway.facts(self.name).domain

    @property
    def policy(self) -> Policy:
        """The published policy."""
        return self.gateway.facts(self.name).policy

    def declare(self, **columns: Attribute) -> Dataset:
        """Declare columns anew, while nothing has been asked; the others stay as they are."""
        schema = self.schema
        merged = {name: schema[name] for name in schema.names} | columns
        self.gateway.redeclare(self.name, Domain.of(merged))
        return self

    def propose(self, policy: Policy) -> PolicyDifference:
        """What publishing ``policy`` would change, in words; nothing is changed."""
        return self.gateway.propose(self.name, policy)

    def past(self, policy: Policy) -> PastLoss:
        """What answers so far lost between values that ``policy`` hides."""
        return self.gateway.past(self.name, policy)

    def publish(self, policy: Policy, *, confirm: bool = False, withdraw: bool = False) -> Dataset:
        """Make ``policy`` the one that new answers follow.

        Once budget is spent, earlier answers were given under the earlier policy. Such a change needs
        ``confirm=True``; it is written into the ledger with its difference in words. What they lost under the
        new policy counts against the budget. If the new policy hides less, the earlier one stays promised
        beside it, and answers have to fit under both, unless ``withdraw=True``.
        """
        self.gateway.publish(self.name, policy, confirm=confirm, withdraw=withdraw)
        return self

    def check_known(self) -> KnownCheck:
        """Which counts that the draft takes to be known are not true of the data; for the curator.

        Reads the data; that somebody looked is written into the ledger.
        """
        return self.gateway.check_known(self.name)

    @property
    def kept(self) -> list[EarlierPolicy]:
        """Earlier policies that are still promised."""
        return self.gateway.kept(self.name)

    def withdraw(self, version: int) -> Dataset:
        """Take an earlier promise back: from now on answers need not fit under it. On record for everyone."""
        self.gateway.withdraw(self.name, version)
        return self

    def refresh(
        self,
        source: object | None = None,
        *,
        dialect: Mapping[str, Any] | None = None,
        same_rows: bool = False,
    ) -> Dataset:
        """Declare that the rows have changed: answers from now on belong to a new snapshot.

        A file is read again, as it was read before unless another ``dialect`` is said; if it does not fit,
        the copy so far stays in force. ``source`` is the table as it is now, for rows that came from one in
        memory. The same people are in it, so what was spent stays spent. Rows that are in another dataset by
        now need ``same_rows``, as when they are declared.
        """
        self.gateway.refresh(self.name, source, dialect=dialect, same_rows=same_rows)
        return self

    @property
    def source(self) -> SourceFacts:
        """Where the rows come from, how a file was read, and the copy of it; for the curator."""
        return self.gateway.source(self.name)

    def introduce(
        self,
        *,
        title: str | None = None,
        description: str | None = None,
        owner: str | None = None,
        contact: str | None = None,
        listed: bool | None = None,
    ) -> Dataset:
        """Say what it is called on pages, what it is about, whose it is, and whom to write to.

        ``listed`` puts its promise on the front page of a server, for everyone to read. What is not said
        stays; the name stays in any case.

        >>> people.introduce(title="People of 2026", contact="data@example.org").face.title
        'People of 2026'
        """
        said = {
            "title": title,
            "description": description,
            "owner": owner,
            "contact": contact,
            "listed": listed,
        }
        new = {key: value for key, value in said.items() if value is not None}
        self.gateway.introduce(self.name, Face.from_plain(self.face.to_plain() | new))
        return self

    @property
    def face(self) -> Face:
        """Title, description, owner and contact."""
        return self.gateway.facts(self.name).face

    @property
    def standing(self) -> str:
        """Whether it can be asked about: "not open yet", "open" or "closed"."""
        return self.gateway.facts(self.name).standing

    def close(self) -> Dataset:
        """Take no more questions; answers that were given stay, and what was spent stays spent."""
        self.gateway.stand(self.name, opened=False)
        return self

    def reopen(self) -> Dataset:
        """Take questions again."""
        self.gateway.stand(self.name, opened=True)
        return self

    def delete(self) -> str:
        """End the dataset and erase the copy of its rows; says what is left of it, and where."""
        return self.gateway.delete(self.name)

    @property
    def budget(self) -> DatasetBudget:
        """What may be lost in total, and what is."""
        return DatasetBudget(self.gateway, self.name)

    def guarantee(self) -> Guarantee:
        """What is promised to the people in the data, in words."""
        return self.gateway.guarantee(self.name)

    def tradeoff(
        self,
        question: Asking,
        policies: Mapping[str, Policy] | Sequence[Policy] | None = None,
        *,
        column: str | None = None,
        thresholds: Iterable[Any] = (),
        thetas: Mapping[str, float] | None = None,
        at_epsilon: AnyEpsilon | None = None,
        progress: Progress | None = None,
    ) -> Tradeoff:
        """What ``question`` costs, and how far off it is, under several policies; reads no data.

        Either ``policies``, named or not, or the distances in ``column`` within which values are hidden;
        ``thetas`` says where named policies stand on the axis of distances.
        """
        if policies is None:
            name = column or question.form.columns[0].name
            listed = list(thresholds)
            policies = {f"within {distance}": self.hiding_within(name, distance) for distance in listed}
            thetas = {f"within {distance}": float(distance) for distance in listed}
        elif not isinstance(policies, Mapping):
            policies = _labelled(policies)
        fixed = None if at_epsilon is None else Epsilon(at_epsilon)
        return self.gateway.tradeoff(
            question.request(), policies, at_epsilon=fixed, thetas=thetas, progress=progress
        )

    def hiding_within(self, column: str, distance: object) -> Policy:
        """The published policy, except that values of ``column`` are hidden within ``distance``."""
        return self.policy.with_column(column, column_graph(self.schema[column], hide_within=distance))

    def where(self, condition: Predicate) -> Dataset:
        """The rows that satisfy ``condition``, and every condition so far."""
        condition.check(self.schema)
        both = condition if isinstance(self.condition, Everything) else self.condition & condition
        return replace(self, condition=both)

    def __getitem__(self, columns: str | tuple[str, ...]) -> Columns:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        facts = self.gateway.facts(self.name)
        return Columns(self.gateway, self.name, facts.domain, names, self.condition, facts.tables)

    def table(self, name: str) -> Dataset:
        """One of several tables, to ask about its rows: ``shop.table("orders").count()``.

        Its name is ``shop.orders``, wherever a dataset is named. Its budget and policies are those of all.
        """
        facts = self.gateway.facts(self.name)
        known = tuple(table.name for table in facts.tables)
        if name not in known:
            raise UnknownDataset(
                f"'{self.name}' has no table '{name}' that can be counted.",
                fixes=known or ("it has a single table: ask about it as it is",),
            )
        return replace(self, name=f"{self.name}.{name}")

    @property
    def tables(self) -> tuple[TableFacts, ...]:
        """The tables that can be counted, of a dataset that has several."""
        return self.gateway.facts(self.name).tables

    def by(
        self,
        *columns: str,
        bins: int | None = None,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
        part: str | None = None,
    ) -> Groups:
        """Rows in groups: ``by("region")``, ``by("age", width=10)``, ``by("day", part="month")``; or all."""
        facts = self.gateway.facts(self.name)
        rows = Groups(self.gateway, self.name, facts.domain, (), self.condition, facts.tables)
        return rows.by(*columns, bins=bins, width=width, edges=edges, groups=groups, part=part)

    def count(self) -> Asking:
        """How many rows there are; exact and free where the policy does not hide it."""
        return self.question(QuestionForm("count", ()))

    def counts(self, conditions: Mapping[str, Predicate]) -> Asking:
        """How many rows satisfy each condition, in one release; they may overlap, on several columns.

        >>> some = people.counts({"young": bf.col("age") < 30, "rich": bf.col("salary") > 50_000})
        >>> some.accurate_to(50).quote().promise
        'In 95 of 100 runs every number is within 50 people of the truth.'
        """
        return self.by().counts(conditions)

    def question(self, form: QuestionForm | str) -> Asking:
        """A question in its short form, such as ``cumulative(salary, bins=20)``."""
        from blowfishdb.language.short import parse_question

        facts = self.gateway.facts(self.name)
        if isinstance(form, str):
            with self._suggesting(facts, lambda text: parse_question(text, facts.domain)).checked("count()"):
                form = parse_question(form, facts.domain)
        return asking(self.gateway, self.name, facts.domain, form.only(self.condition), facts.tables)

    def sql(self, text: str) -> Asking:
        """The question that a SELECT asks; ``WITH ERROR 50 CONFIDENCE 0.95`` states its accuracy."""
        counted = self.counted_by(text)
        parsed = counted.select(text)
        if parsed.explain:
            raise InvalidInput("EXPLAIN is not a question.", fixes=("dataset.explain(question)",))
        terms = Terms(parsed.accuracy, parsed.epsilon)
        return replace(counted.question(parsed.form), terms=terms)

    def counted_by(self, text: str) -> Dataset:
        """The table whose rows a statement counts; this dataset itself where it has a single one."""
        tables = self.tables
        if not tables:
            return self
        from blowfishdb.language.extensions import split_extensions
        from blowfishdb.language.joins import counted_table

        select = split_extensions(text).select
        return self.table(counted_table(select, [table.name for table in tables], self.name))

    def select(self, text: str) -> SqlQuestion:
        """A SELECT as it is read; a refusal suggests only statements that have a price."""
        from blowfishdb.language.select import parse_select
        from blowfishdb.language.text import name_text

        facts = self.gateway.facts(self.name)
        if facts.tables:
            return self.counted_by(text).select(text)

        def parsed(statement: str) -> SqlQuestion:
            return parse_select(statement, facts.domain, dataset=self.name, keys=facts.keys)

        total = f"SELECT COUNT(*) FROM {name_text(self.name)}"  # noqa: S608 - shown, never run
        with self._suggesting(facts, lambda statement: parsed(statement).form).checked(total):
            return parsed(text)

    def _suggesting(self, facts: DatasetInfo, read: Callable[[str], QuestionForm]) -> Suggestions:
        from blowfishdb.service.advice import Suggestions  # it plans; whoever is not refused needs no planner

        return Suggestions(self.name, facts.policy, facts.rows_per_person, read)

    def sharper(self, answer: Answer) -> Asking | None:
        """The question of an answer again within half its error; None where nothing closer can be asked.

        >>> answer = people["age"].histogram(bins=20).accurate_to(100).ask()
        >>> people.sharper(answer).quote().alpha
        50.0
        """
        if not answer.form or not answer.alpha or answer.beta is None or bool(answer.exact.all()):
            return None
        closer = self.question(QuestionForm.from_plain(answer.form))
        return closer.accurate_to(answer.alpha / 2, confidence=1 - answer.beta, each=not answer.simultaneous)

    def made_up(self, rows: int = 1_000, *, seed: int = 0) -> Dataset:
        """The same columns and hidden pairs over made-up rows, to try things for nothing.

        The rows are a function of the declarations and the seed. They cannot be mixed with real answers, and
        every answer from them says that they are made up. Its prices are those of a first question: nothing
        is known, and nothing was answered yet.

        >>> people.made_up(200)["region"].histogram().accurate_to(50).ask().receipt.question
        'made-up rows: histogram of region (3 bins)'
        """
        return replace(self, gateway=self.gateway.made_up(self.name, rows=rows, seed=seed))

    def synthesize(
        self,
        epsilon: AnyEpsilon | None = None,
        *,
        columns: Iterable[AnyColumn] | None = None,
        rows: int | None = None,
        target: str | None = None,
        keep: Iterable[str] = (),
        from_answers: bool = False,
    ) -> Synthesizing:
        """Rows that look like those of this dataset: of ``columns``, all of them if none are named.

        One charge of ``epsilon`` for the model; any number of rows is then drawn from it for nothing. A
        ``target`` is a column whose relations to the others matter most. Rows of the columns ``keep`` stay
        as they are, and the others are drawn given them: columns that no promise hides and of which the
        curator confirmed it (``may_keep``). With ``from_answers`` nothing is measured: it is made from what
        is out already, and free.

        >>> rows = people.count().spend(1).ask()  # public and free; a quote needs it
        >>> print(people.synthesize(epsilon="0.2", columns=["age", "salary"]).quote().words[0])
        Costs ε = 0.2, once; drawing further rows is free.
        """
        if (epsilon is None) != from_answers:
            raise InvalidInput(
                "A synthetic table costs an ε, or is made from answers for nothing: one of the two.",
                fixes=("synthesize(epsilon='0.5')", "synthesize(from_answers=True)"),
            )
        from blowfishdb.workspace.synthesizing import Synthesizing, synthetic_form  # it draws rows

        form = synthetic_form(columns, target, keep, from_answers=from_answers)
        asking = self.question(form).spend(1 if epsilon is None else epsilon)
        return Synthesizing(asking, rows)

    @property
    def may_keep(self) -> tuple[str, ...]:
        """Columns whose rows synthetic tables may keep as they are, as the curator confirmed."""
        return self.gateway.facts(self.name).may_keep

    def keep_rows(self, columns: Iterable[str], *, confirm: bool = False) -> KeptColumns:
        """What it means that synthetic tables keep rows of these columns; with ``confirm``, they may.

        For the curator: kept rows are real rows of real people, which no promise hides. It says how many
        are unlike all others, and warns of columns that give hidden ones away. True counts are looked at for
        that, which is written into the ledger; so is what was confirmed. ``keep_rows([], confirm=True)``
        takes it back for tables that are made from then on.

        >>> people.keep_rows([]).sentences
        ('No rows are kept: synthetic tables draw all columns.',)
        """
        if isinstance(columns, str):
            raise InvalidInput("Columns are a list of names.", fixes=(f"keep_rows([{columns!r}])",))
        return self.gateway.keep_rows(self.name, list(columns), confirm=confirm)

    def compare_synthetic(self, number: int) -> SyntheticComparison:
        """True counts beside those of synthetic table ``number``; for the curator, who looks on record."""
        return self.gateway.compare_synthetic(self.name, number)

    def explain(self, question: Asking) -> Explanation:
        """How ``question`` would be answered: boxes, policy graph, sensitivity, mechanism; free."""
        return self.gateway.explain(question.request())

    def preview(self, question: Asking, *, policy: Policy | None = None, stand_in: bool = False) -> Preview:
        """The true answer beside a noisy one, for the curator, under the published policy or a draft."""
        return self.gateway.preview(question.request(), policy=policy, stand_in=stand_in)


def _labelled(policies: Sequence[Policy]) -> dict[str, Policy]:
    """Policies by what they say; those that say the same in short are numbered."""
    labelled: dict[str, Policy] = {}
    for number, policy in enumerate(policies, start=1):
        label = policy.describe()
        labelled[label if label not in labelled else f"{label} ({number})"] = policy
    return labelled


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Questions that are settled on together, before any of them is answered.

    >>> salary = people["salary"]
    >>> both = ws.batch(salary.cumulative(bins=10).accurate_to(50), salary.median().accurate_to(80))
    >>> both.quote()
    Epsilon('0.1...')
    >>> [answer.kind for answer in both.ask(max_cost="0.3")]
    ['cumulative', 'quantiles']
    """

    gateway: Gateway
    questions: tuple[Asking, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InvalidInput("A batch has at least one question.")

    def quote(self) -> Epsilon:
        """What all of them cost together; free, like every quote."""
        return self.quotes().epsilon

    def quotes(self, *, cancel: Cancellation | None = None) -> TogetherQuote:
        """What each of them costs alone and beside the others, and how it is answered; free.

        >>> curve, bars = people["age"].cumulative(bins=6), people["age"].histogram(bins=6)
        >>> print(ws.plan(curve.accurate_to(50), bars.accurate_to(50)).quotes().sentence)
        Together this costs ε ..., instead of ε ... one by one.
        """
        return self.gateway.quote_all(
            [replace(question.request(), cancel=cancel) for question in self.questions]
        )

    def ask(self, *, max_cost: AnyEpsilon | None = None, key: str | RequestKey | None = None) -> list[Answer]:
        """The answers, in the order of the questions; under a ``key`` each is charged once for ever."""
        limit = None if max_cost is None else Epsilon(max_cost)
        if isinstance(key, str):
            questions = [{"dataset": question.dataset, **question.to_plain()} for question in self.questions]
            key = RequestKey(key, digest(questions))
        requests = [
            question.request(None if key is None else replace(key, part=part))
            for part, question in enumerate(self.questions)
        ]
        return self.gateway.ask_all(requests, max_cost=limit)


@final
@dataclass(frozen=True, eq=False)
class DatasetBudget:
    """The total privacy loss that a dataset may suffer, and how much of it is gone.

    >>> people.budget.set("2.5")
    >>> people.budget.grant("ada", 1)  # from now on only those with a grant can spend
    >>> people.budget
    <Budget of people: 0 of 2.5 spent, 2.5 left>
    """

    gateway: Gateway
    name: str

    @property
    def status(self) -> Budget:
        """Total, spent and held, exact."""
        return self.gateway.budget(self.name)

    @property
    def remaining(self) -> Epsilon:
        """What new answers may still cost."""
        return self.status.remaining

    @property
    def grants(self) -> list[Grant]:
        """Who may spend what, and has."""
        return self.gateway.grants(self.name)

    def grant(self, user: str, epsilon: AnyEpsilon) -> None:
        """Let ``user`` spend up to ``epsilon`` of the total; once there are grants, only they can spend."""
        self.gateway.grant(self.name, user, Epsilon(epsilon))

    def set(self, total: AnyEpsilon) -> None:
        """Declare the total."""
        self.gateway.set_budget(self.name, Epsilon(total))

    def __repr__(self) -> str:
        status = self.status
        spent, total, left = (
            significant(float(part)) for part in (status.spent, status.total, status.remaining)
        )
        return f"<Budget of {self.name}: {spent} of {total} spent, {left} left>"


class Datasets(Gateway):
    """A workspace as people use it: its datasets, each under its name."""

    def __getitem__(self, name: str) -> Dataset:
        self.facts(name)
        return Dataset(self, name)

    def add_dataset(
        self,
        name: str,
        source: object,
        *,
        domain: Domain,
        table: str | None = None,
        view: str | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        row_key: str | None = None,
        kind: str | None = None,
        dialect: Mapping[str, Any] | None = None,
        public: Sequence[str] = (),
        rows_vary: bool | None = None,
        same_rows: bool = False,
        tables: Tables | None = None,
        opened: bool = True,
    ) -> Dataset:
        """Declare a dataset: where its rows are and which values they may hold.

        ``source`` is a path (DuckDB, SQLite, CSV, Parquet), a database address, or a pandas, Arrow or Polars
        table. The rows are those of ``table``, or of ``view``, a SELECT over several tables. With ``person``,
        the column that says whose row it is, at most ``rows_per_person`` rows count for each, by ``row_key``.
        Everything about a record stays hidden until a policy says otherwise, and the budget is 1.

        Files of rows and tables in memory are read once, now, into a copy beside the workspace. How a CSV
        file is written (``dialect``) is found if it is not said, and kept for ``refresh``. Rows in a database
        stay there: ``kind`` says whether they are left as they are ("frozen") or may change ("live").

        ``public`` names columns that no policy may hide, such as those by which a view leaves out rows;
        ``rows_vary`` says of a view in the database whether hidden values decide which rows it has. Rows that
        are in another dataset already need ``same_rows=True``: the promises add up. Not
        ``opened``, it takes no questions before a policy is published.

        ``tables`` declares several tables of a database that belong together by keys, instead of a table or a
        view: ``bf.Tables``. Columns are then called ``orders.amount``.
        """
        rows = SourceRows(
            table,
            view,
            person,
            rows_per_person,
            row_key,
            None if kind is None else SourceKind.read(kind),
            None if dialect is None else Dialect.from_plain(dialect),
            tuple(public),
            rows_vary,
            same_rows,
            None if tables is None else tables.to_plain(),
            opened,
        )
        self.declare(name, source, domain, rows)
        return self[name]

    def batch(self, *questions: Asking) -> Batch:
        """Several questions as one: what follows from the others is free, and known more closely."""
        return Batch(self, questions)

    def plan(self, *questions: Asking) -> Batch:
        """Questions planned together, to look at what they cost beside each other before they are asked.

        >>> curve, bars = people["salary"].cumulative(bins=10), people["salary"].histogram(bins=10)
        >>> both = ws.plan(curve.accurate_to(50), bars.accurate_to(50))
        >>> both.quotes().alone > both.quote()
        True
        """
        return self.batch(*questions)
