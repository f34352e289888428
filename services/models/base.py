"""What all tables have: a uuid key, a tenant, who made the row, and when it was made and last changed."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import DateTime, Enum, ForeignKey, MetaData, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

DEFAULT_TENANT: Final = UUID("00000000-0000-0000-0000-000000000001")

# The names PostgreSQL itself gives, so that sql/pipeline/tables.sql need not spell them out.
_NAMES: Final = {
    "pk": "%(table_name)s_pkey",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own way
        str: Text(),
        datetime: DateTime(timezone=True),
        list[str]: ARRAY(Text()),
        dict[str, Any]: JSONB(none_as_null=True),
        dict[str, str]: JSONB(none_as_null=True),
        list[dict[str, Any]]: JSONB(none_as_null=True),
    }


class Row:
    """The key and the two times. The database fills all three: `updated_at` moves with every change, by a trigger."""

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=text("gen_random_uuid()"), sort_order=-100)
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), sort_order=100)
    updated_at: Mapped[datetime] = mapped_column(server_default=text("now()"), sort_order=100)


class Owned(Row):
    """Whose row it is, and who made it: the id of a system user, or a person's name (a plain INSERT: the role)."""

    tenant_id: Mapped[UUID] = mapped_column(
        ForeignKey("tenant.id"), server_default=text(f"'{DEFAULT_TENANT}'::uuid"), sort_order=-90
    )
    created_by: Mapped[str] = mapped_column(server_default=text("SESSION_USER"), sort_order=90)


def words(kind: type[StrEnum]) -> Enum:
    """The enum type of PostgreSQL for these words: place_search_status for PlaceSearchStatus."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    return Enum(kind, name=name, values_callable=lambda enum: [member.value for member in enum])


def one_of_new(kind: type[StrEnum]) -> Any:
    """A curation column: every row begins as New."""
    return mapped_column(words(kind), server_default=text(f"'New'::{words(kind).name}"))
