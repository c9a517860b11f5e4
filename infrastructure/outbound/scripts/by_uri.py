"""Context scripts of both kinds."""

from application.ports.scripts import ScriptFinished, ScriptRun, ScriptRunner


class ScriptsByUri:
    """Implements `ScriptRunner`: a uri that is written as a URL is called, any other is a file.
    What stands behind a variable changes nothing about it."""

    def __init__(self, files: ScriptRunner, urls: ScriptRunner) -> None:
        self._files = files
        self._urls = urls

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Run it within its limits."""
        runner = self._urls if request.script.is_remote else self._files
        return await runner.run(request)
