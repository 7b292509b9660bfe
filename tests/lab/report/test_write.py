"""The whole report: complete, self-contained, the same every time, and honest about what is not there."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fake_records import FakeExperiment, evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report import write_report
from batchensemble.lab.report.views import comparison, entropy_histograms, higher, over_label, training_curves

OURS, THEIRS = ({"method": method, "data": "CIFAR-10"} for method in ("BatchEnsemble", "Single"))


@pytest.fixture
def experiments(accuracy_evidence, unseen_evidence):
    claim = higher("accuracy", OURS, THEIRS, "It beats one network.")
    return [
        FakeExperiment("accuracy", accuracy_evidence, comparison("accuracy", columns="data"), claim),
        FakeExperiment("unseen", unseen_evidence, comparison("auroc"), entropy_histograms(), training_curves("loss")),
        FakeExperiment("later", {}),
    ]


@pytest.fixture
def records(experiments):
    return [record for experiment in experiments for record in experiment.records]


class Tags(HTMLParser):
    """Whether every tag is closed, and what the page points at."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs) -> None:
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_all_files_are_there_and_the_same_every_time(records, experiments, tmp_path) -> None:
    paths = write_report(records, experiments, tmp_path / "first")
    again = write_report(reversed(records), experiments, tmp_path / "second")
    assert {str(path.relative_to(tmp_path / "first")) for path in paths} == {
        "report.html", "report.md",
        "tables/accuracy-small-table.md", "tables/accuracy-small-table.csv",
        "tables/unseen-small-table.md", "tables/unseen-small-table.csv",
        "figures/unseen-small-entropy.svg", "figures/unseen-small-entropy.png",
    }  # fmt: skip
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]


def test_the_page_is_whole_and_needs_no_network(records, experiments, tmp_path) -> None:
    page = write_report(records, experiments, tmp_path)[0].read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    fetched = [link for link in tags.links if not link.startswith(("#", "data:", "https://arxiv.org/"))]
    assert fetched == []
    assert "url(" not in page
    assert "<script" not in page
    assert {f"#{one.id}" for one in experiments} <= set(tags.links)  # the index


def test_the_page_says_what_holds_what_is_missing_and_what_was_not_run(records, experiments, tmp_path) -> None:
    page = write_report(records, experiments, tmp_path)[0].read_text()
    assert "✓ holds" in page
    assert "paper 95.31" in page
    assert "missing" in page
    assert "Provenance: 19 runs, 5 missing" in page
    assert " 19/24</span>" in page
    assert "Not drawn: no run has loss by epoch." in page
    assert "batchensemble run later --scale smoke" in page
    assert "small scale" in page


def test_markdown_links_to_pictures_that_are_there(records, experiments, tmp_path) -> None:
    text = write_report(records, experiments, tmp_path)[1].read_text()
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert pictures == ["figures/unseen-small-entropy.png"]
    assert all((tmp_path / picture).exists() for picture in pictures)
    assert "- **holds**: It beats one network." in text
    assert "Missing: MC-dropout, CIFAR-10, seed 2; " in text
    assert "Not run at: paper, smoke." in text


def test_claims_that_were_not_measured_take_one_line(accuracy_evidence, tmp_path) -> None:
    claims = [higher("bleu", OURS, THEIRS, words) for words in ("It translates.", "It sings.")]
    measured = higher("accuracy", OURS, THEIRS, "It beats one network.")
    experiment = FakeExperiment("accuracy", accuracy_evidence, claims[0], measured, claims[1])
    page, text, *_ = (path.read_text() for path in write_report(experiment.records, [experiment], tmp_path))
    assert "- **not measured** (2): It translates. It sings.\n" in text
    assert "2 of 3 claims not measured in this setting</summary>" in page
    assert page.index("It beats one network.") < page.index("It translates.")


def test_a_small_run_never_stands_beside_the_papers_number(tmp_path) -> None:
    number = Published({"method": "Single", "data": "CIFAR-10"}, "accuracy", 0.9531)
    found = evidence([place({"accuracy": 0.4}, {"method": "Single", "data": "Procedural-10"}, scale="smoke")], [number])
    experiment = FakeExperiment("accuracy", replace(found, scale="smoke"), comparison("accuracy"))
    page, text, table, _ = (path.read_text() for path in write_report(experiment.records, [experiment], tmp_path))
    assert "paper" not in table.partition("*")[0] + table.split("\n\n")[1]
    for whole in (page, text):
        assert "The paper" in whole
        assert "95.31" in whole  # apart, in a table of its own
        assert "Nothing of ours was measured in the same setting" in whole


def test_scales_stay_apart_the_largest_first(tmp_path) -> None:
    labels = {"method": "Single"}
    found = {
        scale: replace(evidence([place({"accuracy": value}, labels, scale=scale)]), scale=scale)
        for scale, value in (("smoke", 0.111), ("paper", 0.999))
    }
    experiment = FakeExperiment("accuracy", found, comparison("accuracy"))
    page = write_report(experiment.records, [experiment], tmp_path)[0].read_text()
    assert page.index("99.90") < page.index('<details class="lesser">') < page.index("11.10")


def test_claims_are_counted_at_the_largest_scale_that_measured_any(tmp_path) -> None:
    places = {
        "paper": [place({"nll": 1.0}, OURS, scale="paper")],
        "small": [place({"accuracy": value}, labels) for value, labels in ((0.9, OURS), (0.8, THEIRS))],
    }
    found = {scale: replace(evidence(several), scale=scale) for scale, several in places.items()}
    experiment = FakeExperiment("accuracy", found, higher("accuracy", OURS, THEIRS, "It beats one network."))
    page = write_report(experiment.records, [experiment], tmp_path)[0].read_text()
    assert '<span class="tally ONE_YES" title="with one seed: yes, small scale">(✓) 1</span>' in page
    assert '<details class="lesser" open>' in page  # what was measured is not folded away


def test_two_figures_of_one_name_get_two_files(diversity_evidence, tmp_path) -> None:
    views = (over_label("share", "accuracy"), over_label("share", "disagreement"))
    experiment = FakeExperiment("growth", diversity_evidence, *views)
    names = {path.name for path in write_report(experiment.records, [experiment], tmp_path)}
    assert {"growth-small-curves.svg", "growth-small-curves-2.svg"} <= names


def test_what_a_label_says_is_text_and_not_markup(tmp_path) -> None:
    found = evidence([place({"nll": 1.0}, {"method": "<b>bold</b> & co"})])
    experiment = FakeExperiment("marked", found, comparison("nll"), claim="a < b")
    page = write_report(experiment.records, [experiment], tmp_path)[0].read_text()
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; co" in page
    assert "a &lt; b" in page
