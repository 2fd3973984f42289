"""A server that plays every provider, and providers and chains that are closed after the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_tui.errors import ProviderError
from memory_tui.providers import Provider
from memory_tui.providers.chain import Chain, create
from tests.support.embed import settings_for
from tests.support.provider_server import Play, serving


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as running:
        yield running


@pytest.fixture
def provider(play: Play) -> Iterator[Callable[..., Provider]]:
    made: list[Provider] = []

    def make(name: str = "openai", at: Play | None = play, **more: Any) -> Provider:
        made.append(create(name, settings_for(at, name, **more)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def chain(play: Play) -> Iterator[Callable[..., tuple[Chain, list[ProviderError]]]]:
    """Make a chain whose first provider is at `play`, and the list of what it is told."""
    made: list[Chain] = []

    def make(name: str = "openai", at: Play | None = play, **more: Any) -> tuple[Chain, list[ProviderError]]:
        news: list[ProviderError] = []
        made.append(Chain(settings_for(at, name, **more), news.append))
        return made[-1], news

    yield make
    for one in made:
        one.close()
