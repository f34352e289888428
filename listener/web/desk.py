"""Where people sign in and act. Every action is shown first, with the SQL it runs, and confirmed with a form."""

import asyncio
from urllib.parse import parse_qsl

import psycopg
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from listener.errors import UserError
from listener.faults import is_unreachable
from listener.logs import log_of
from listener.web import reads, tables
from listener.web.access import SESSION_SECONDS, Person
from listener.web.actions import ACTIONS, Action, Form, told
from listener.web.guard import COOKIE
from listener.web.pages import Shell
from listener.web.store import Row, said

_LARGEST_FORM = 200_000
_WRONG_TOKEN_SECONDS = 1.0

_log = log_of("web")


class Desk:
    """Everything that changes something."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def routes(self) -> list[Route]:
        return [
            Route("/sign-in", self.ask, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/do/{action}", self.confirm, methods=["GET"]),
            Route("/do/{action}", self.act, methods=["POST"]),
        ]

    # -- signing in ----------------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        return await self._shell.page(
            request, "sign_in.html", next=_local(request.query_params.get("next")), wrong=False
        )

    async def sign_in(self, request: Request) -> Response:
        form = dict(await _read(request))
        person = self._shell.access.person_with(form.get("token", ""))
        if person is None:
            _log.warning("a wrong token was given")
            await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            return await self._shell.page(request, "sign_in.html", 403, next=_local(form.get("next")), wrong=True)
        response = RedirectResponse(_local(form.get("next")), 303)
        response.set_cookie(
            COOKIE,
            self._shell.access.cookie_for(person),
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        self._proven(request, dict(await _read(request)).get("form_token", ""))
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    # -- acting --------------------------------------------------------------------------------------------------------

    async def confirm(self, request: Request) -> Response:
        action = _action(request)
        person: Person | None = request.state.person
        if person is None or not person.may_act:
            if person is None and not self._shell.access.is_open:
                return RedirectResponse("/sign-in", 303)
            return await self._shell.page(request, "refused.html", 403, action=action)
        form = await self._form(action, list(request.query_params.multi_items()))
        return await self._show(request, action, form)

    async def act(self, request: Request) -> Response:
        action = _action(request)
        fields = await _read(request)
        person = self._proven(request, dict(fields).get("form_token", ""))
        if not person.may_act:
            return await self._shell.page(request, "refused.html", 403, action=action)
        form = await self._form(action, fields)
        try:
            result = await self._shell.store.act(person, action.call(form))
        except UserError as error:
            return await self._show(request, action, form, 400, str(error))
        except psycopg.errors.InsufficientPrivilege as error:
            return await self._show(request, action, form, 403, _missing_right(error))
        except psycopg.Error as error:
            if is_unreachable(error):
                raise
            # what the engine refuses it explains, with a hint
            return await self._show(request, action, form, 409, _explained(error))
        self._shell.shared.forget()
        _log.info("action", extra={"action": action.name, "workflow": form.workflow or None, "person": person.name})
        response = RedirectResponse(_local(dict(fields).get("next")), 303)
        self._shell.tell(response, told(result))
        return response

    async def _show(
        self, request: Request, action: Action, form: Form, status: int = 200, error: str | None = None
    ) -> Response:
        """What would be done, and a button to do it."""
        try:
            call = action.call(form).as_string(None)
        except UserError:
            call = None  # something is still to be filled in
        home = f"/data/{form.view.table.name}" if form.view else f"/workflows/{form.workflow}" if form.workflow else "/"
        back = form.values.get("next") or home
        return await self._shell.page(
            request,
            "confirm.html",
            status,
            action=action,
            form=form,
            call=call,
            error=error,
            next=_local(back),
            affected=await self._affected(action, form),
            counted=reads.COUNTED,
        )

    async def _affected(self, action: Action, form: Form) -> int | None:
        """How many items it is about, where that is not plain to see."""
        if not action.takes_all or form.keys:
            return None
        async with self._shell.store.reading() as reader:
            return await reads.failed(reader, form.workflow, form.text("error"))

    def _proven(self, request: Request, form_token: str) -> Person:
        """Somebody is signed in, and the form comes from a page of theirs. Nothing is ever done for anybody else."""
        person: Person | None = request.state.person
        if person is None:
            raise HTTPException(403, "Nobody is signed in.")
        if not self._shell.access.is_form_token(person, form_token):
            raise HTTPException(
                403, "This form is not from a page of yours, or the session is over. Go back and reload."
            )
        return person

    async def _form(self, action: Action, fields: list[tuple[str, str]]) -> Form:
        values = dict(fields)
        keys = [key for name, value in fields if name == "key" for key in [value.strip()] if key]
        keys += values.get("keys", "").replace(",", " ").split()
        settings: Row = {}
        if action.on_table:
            return Form("", values, tuple(dict.fromkeys(keys)), view=await self._decided(values.get("table", "")))
        if not action.for_all:
            async with self._shell.store.reading() as reader:
                found = await reads.settings(reader, values.get("workflow", ""))
            if found is None:
                raise HTTPException(404, f"There is no workflow {values.get('workflow', '')!r}.")
            settings = found
        return Form(values.get("workflow", ""), values, tuple(dict.fromkeys(keys)), settings)

    async def _decided(self, name: str) -> tables.View:
        async with self._shell.store.reading() as reader:
            view = await self._shell.view(reader, name)
        if not view.decisions:
            raise HTTPException(404, f"{view.table.title} are not decided on here.")
        return view


def _action(request: Request) -> Action:
    action = ACTIONS.get(request.path_params["action"])
    if action is None:
        raise HTTPException(404, "There is no such action.")
    return action


async def _read(request: Request) -> list[tuple[str, str]]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise HTTPException(413, "That is too much for a form; use SQL.")
    return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=2000)


def _local(path: object) -> str:
    """An address on this page and nowhere else."""
    text = str(path or "/")
    return text if text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() else "/"


def _missing_right(error: psycopg.Error) -> str:
    return f"{said(error)}. The page's database login needs: GRANT scheduler_admin TO …"


def _explained(error: psycopg.Error) -> str:
    return " ".join(filter(None, (said(error), error.diag.message_hint)))
