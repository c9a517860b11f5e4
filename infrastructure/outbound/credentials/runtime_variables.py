"""What the environment of a runtime refers to and cannot be had."""

from application.ports.credentials import MissingCredential
from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from domain.configuration.runtimes import CommandRuntime
from infrastructure.outbound.configuration.load import LoadedConfiguration


def unset_variables(
    runtime: CommandRuntime, loaded: LoadedConfiguration
) -> list[MissingCredential]:
    """Each variable of the server that is not set, and each of the runtime whose value stands in
    another file than the one that was read here."""
    missing: list[MissingCredential] = []
    for name, value in runtime.env.items():
        try:
            loaded.resolve(value)
        except ConfigurationError as failure:
            missing += [_missing_variable(name, problem) for problem in failure.problems]
    return missing


def _missing_variable(name: str, problem: ConfigurationProblem) -> MissingCredential:
    if problem.pointer:
        text = f"{name} of its runtime stands in another file than the one this server has read"
        return MissingCredential(name, text)
    variable = problem.source
    return MissingCredential(variable, f"{variable} is not set", is_unset=True)
