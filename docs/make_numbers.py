"""Write the numbers of README and docs from the records in results/; with --check, only see that they are up to date.

    python docs/make_numbers.py [--check]

A page marks the place: everything between `<!-- numbers: NAME -->` and `<!-- end -->` is drawn by the function of that
name in `drawn/`.
"""

import re
import sys
from collections.abc import Callable

from drawn import bandits, claims, classification, lifelong, speed, tables, translation
from drawn.records import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBERS: dict[str, Callable[[], str]] = {
    block.__name__: block
    for block in (
        speed.speed,
        speed.speed_network,
        speed.speed_words,
        speed.speed_peers,
        speed.cost_by_members,
        classification.gains,
        classification.cifar_paper,
        classification.cifar_paper_members,
        classification.cifar_paper_shifted,
        classification.cifar10_leads,
        classification.cifar100_paper,
        classification.cifar100_leads,
        classification.cifar_small,
        classification.cifar_short,
        classification.cifar_short_shifted,
        classification.recipes,
        classification.fine_tuning,
        tables.gains_tables,
        tables.tables,
        tables.tables_members,
        bandits.bandits,
        bandits.bandits_paired,
        bandits.bandits_rewards,
        lifelong.lifelong_cifar100,
        lifelong.lifelong_options,
        lifelong.lifelong_gains,
        lifelong.lifelong_cost,
        lifelong.lifelong_growth,
        translation.translation,
        translation.translation_curves,
        translation.translation_cost,
        claims.claims,
    )
}


def drawn(text: str) -> str:
    """A page with its numbers as the records have them."""
    return MARK.sub(lambda match: f"{match[1]}{NUMBERS[match[2]]()}\n{match[3]}", text)


def main() -> int:
    """Write the pages, or say which are out of date."""
    new = {page: drawn(page.read_text()) for page in PAGES}
    stale = [page for page in PAGES if new[page] != page.read_text()]
    if "--check" in sys.argv:
        for page in stale:
            print(f"{page.relative_to(ROOT)} is out of date: run python docs/make_numbers.py")
        return len(stale)
    for page in stale:
        page.write_text(new[page])
    return 0


if __name__ == "__main__":
    sys.exit(main())
