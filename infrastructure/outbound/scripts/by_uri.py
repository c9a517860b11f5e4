"""Dispatch of context scripts by URI."""

from application.ports.scripts import ScriptFinished, ScriptRun, ScriptRunner


class ScriptsByUri:
    """Implementation of `ScriptRunner`: a URI written as a URL is called, any other is a file.

    The value of a variable in the URI does not change that.
    """

    def __init__(self, files: ScriptRunner, urls: ScriptRunner) -> None:
        self._files = files
        self._urls = urls

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Run a script within its limits."""
        runner = self._urls if request.script.is_remote else self._files
        return await runner.run(request)
