"""The one exception whose text is meant for the person at the keyboard."""


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
