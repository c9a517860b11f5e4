"""The name under which this process holds runs."""

from collections.abc import Callable


class Holder:
    """A name that is given up when its lease is lost: a new one is taken then, so that what was
    held under the old one can never be mistaken for being held now."""

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint
        self._name = mint()

    @property
    def name(self) -> str:
        """The present name."""
        return self._name

    def replace_name(self) -> None:
        """Take another name."""
        self._name = self._mint()
