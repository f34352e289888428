"""The exceptions whose text is meant for the person at the keyboard."""


class UserError(Exception):
    """Something the user can put right: what happened, and the step that fixes it.

    The command line prints both without a traceback and exits with 1.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class UnregisteredError(UserError):
    """A workflow that is installed here and has no row in this database: nothing is broken, there is nothing to do."""

    def __init__(self, workflow: str) -> None:
        super().__init__(
            f"Workflow {workflow} is not registered in this database.",
            "Register it with scheduler.create_workflow(); its rows stay as they are until then.",
        )
