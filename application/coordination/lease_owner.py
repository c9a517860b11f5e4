"""The name under which this process holds runs."""

from collections.abc import Callable


class LeaseOwner:
    """The holder name of this process.

    When its lease is lost, a new name is taken. So runs held under the old name cannot be mistaken
    for runs held now.
    """

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint
        self._name = mint()

    @property
    def name(self) -> str:
        return self._name

    def replace_name(self) -> None:
        self._name = self._mint()
