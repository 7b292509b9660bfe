"""The route: set for one pass, one per thread, and missing where rows have no members."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from torch import nn

import batchensemble as be
from batchensemble.nn.routing.route import Route, advance, carry_route, current, travel

M = 3


def test_a_route_lasts_for_one_pass() -> None:
    route = Route(M, 4, None)
    assert current() is None
    assert travel(route, current) is route
    assert current() is None


def test_the_old_route_is_back_after_an_error_and_after_an_advance() -> None:
    outer, inner = Route(M, 4, None), Route(M, 4, 1)

    def breaks() -> None:
        advance(Route(M, 5, 0))
        raise KeyError

    def around() -> Route | None:
        with pytest.raises(KeyError):
            travel(inner, breaks)
        return current()

    assert travel(outer, around) is outer
    assert current() is None


def test_threads_have_routes_of_their_own() -> None:
    seen = []

    def look() -> None:
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()

    travel(Route(M, 4, None), look)
    assert seen == [None]


def test_carry_route_gives_the_recomputation_the_route_of_the_first_pass() -> None:
    route = Route(M, 4, 2)
    first, again = travel(route, carry_route)
    with first:
        assert current() is None
    with again:
        assert current() is route
    assert current() is None


def test_a_carried_route_may_be_entered_again_within_itself_and_in_other_threads() -> None:
    outer, route = Route(M, 4, None), Route(M, 4, 2)
    _, again = travel(route, carry_route)

    def entered() -> list[Route | None]:
        with again:
            with again:
                inside = current()
            return [inside, current()]

    with again, ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: [*entered(), current()]).result() == [route, route, None]
    for _ in range(2):
        assert travel(outer, lambda: [*entered(), current()]) == [route, route, outer]


def test_fanned_counts_the_copies() -> None:
    route = Route(M, 4, None, fan_out="head", copies=M).fanned()
    assert (route.count, route.fan_out) == (12, None)


def test_an_ensemble_cannot_be_converted_again() -> None:
    with pytest.raises(ValueError, match="batchensemble layers already"):
        be.convert(nn.Sequential(be.convert(nn.Linear(2, 2), members=2)), members=2)
    with pytest.raises(ValueError, match="batchensemble layers already"):
        be.convert(nn.Sequential(be.nn.Conv2d(2, 2, 1, members=2), nn.Linear(2, 2)), members=2)
