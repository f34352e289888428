"""The manifests: valid, drained before killed, restarted never because the database is away."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import psycopg
import pytest

from listener import __version__
from tests.conftest import Connect
from tests.deploy.files import DEPLOY, ROOT, documents
from tests.sql.queue import Queue

FOLDER = DEPLOY / "kubernetes"
MANIFESTS = [document for path in sorted(FOLDER.glob("*.yaml")) for document in documents(path)]
CORE = [m for m in MANIFESTS if m["kind"] not in {"Kustomization", "ScaledObject", "TriggerAuthentication"}]


def _only(required: str, **properties: Any) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()},
    }


def _keda(**spec: Any) -> dict[str, Any]:
    metadata = _only("name", name="string")
    return _only(
        "apiVersion kind metadata spec", apiVersion={"const": "keda.sh/v1alpha1"}, kind={}, metadata=metadata, **spec
    )


# What we use of KEDA's resources and of its PostgreSQL scaler. KEDA passes every parameter of a trigger as a text.
KEDA = {
    "ScaledObject": _keda(
        spec=_only(
            "scaleTargetRef triggers",
            scaleTargetRef=_only("name", apiVersion="string", kind="string", name="string"),
            minReplicaCount="integer",
            maxReplicaCount="integer",
            pollingInterval="integer",
            cooldownPeriod="integer",
            triggers={
                "type": "array",
                "minItems": 1,
                "items": _only(
                    "type metadata",
                    type={"const": "postgresql"},
                    authenticationRef=_only("name", name="string", kind="string"),
                    metadata=_only(
                        "query targetQueryValue",
                        query="string",
                        targetQueryValue="string",
                        activationTargetQueryValue="string",
                    ),
                ),
            },
        )
    ),
    "TriggerAuthentication": _keda(
        spec=_only(
            "secretTargetRef",
            secretTargetRef={
                "type": "array",
                "items": _only("parameter name key", parameter={"const": "connection"}, name="string", key="string"),
            },
        )
    ),
}


def one_of(kind: str, name: str) -> dict[str, Any]:
    (found,) = (m for m in MANIFESTS if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def pods() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        if manifest["kind"] in {"Deployment", "Job"}:
            yield manifest["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", CORE, ids=lambda m: f"{m['kind']} {m['metadata']['name']}")
def test_it_is_what_kubernetes_knows(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("kind", KEDA)
def test_it_is_what_keda_knows(kind: str) -> None:
    (manifest,) = (m for m in MANIFESTS if m["kind"] == kind)
    jsonschema.validate(manifest, KEDA[kind])


def test_kustomize_finds_its_files() -> None:
    (kustomization,) = documents(FOLDER / "kustomization.yaml")
    assert [name for name in kustomization["resources"] if not (FOLDER / name).is_file()] == []


def test_every_file_speaks_of_this_version() -> None:
    (kustomization,) = documents(FOLDER / "kustomization.yaml")
    assert kustomization["images"][0]["newTag"] == __version__
    one_of("Job", f"scrapersky-migrate-{__version__.replace('.', '-')}")
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f'\nversion = "{__version__}"\n' in (ROOT / "pyproject.toml").read_text()


def test_no_pod_has_rights_it_does_not_need() -> None:
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        inside = container["securityContext"]
        assert (inside["allowPrivilegeEscalation"], inside["readOnlyRootFilesystem"]) == (False, True)
        assert inside["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]


def test_an_outage_of_the_database_restarts_nobody() -> None:
    for name in ("listener", "web"):
        (container,) = one_of("Deployment", f"scrapersky-{name}")["spec"]["template"]["spec"]["containers"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/health"
        assert container.get("startupProbe", container["livenessProbe"])["httpGet"]["path"] == "/health"
        assert container["readinessProbe"]["httpGet"]["path"] == "/ready"


def test_a_node_can_be_drained_however_few_listeners_there_are() -> None:
    budget = one_of("PodDisruptionBudget", "scrapersky-listener")["spec"]
    assert one_of("ScaledObject", "scrapersky-listener")["spec"]["minReplicaCount"] == 1
    assert "minAvailable" not in budget
    assert budget["maxUnavailable"] == 1


def test_a_listener_has_time_to_drain_before_it_is_killed() -> None:
    pod = one_of("Deployment", "scrapersky-listener")["spec"]["template"]["spec"]
    settings = {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
    assert pod["terminationGracePeriodSeconds"] > float(settings["LISTENER_DRAIN_SECONDS"]) + 10


def test_every_secret_that_is_used_is_in_the_example() -> None:
    (secret,) = documents(FOLDER / "secret.example.yaml")
    used = {
        item["valueFrom"]["secretKeyRef"]["key"]
        for pod in pods()
        for item in pod["containers"][0]["env"]
        if "valueFrom" in item
    }
    used |= {ref["key"] for ref in one_of("TriggerAuthentication", "scrapersky")["spec"]["secretTargetRef"]}
    assert used == set(secret["stringData"])


def test_selectors_select_our_pods() -> None:
    labels = one_of("Deployment", "scrapersky-listener")["spec"]["template"]["metadata"]["labels"]
    assert one_of("PodDisruptionBudget", "scrapersky-listener")["spec"]["selector"]["matchLabels"] == labels
    assert one_of("NetworkPolicy", "scrapersky-listener")["spec"]["podSelector"]["matchLabels"] == labels
    web = one_of("Deployment", "scrapersky-web")["spec"]["template"]["metadata"]["labels"]
    assert one_of("Service", "scrapersky-web")["spec"]["selector"] == web


def test_the_autoscaler_sees_the_oldest_item(db: psycopg.Connection, connect: Connect) -> None:
    scaled = one_of("ScaledObject", "scrapersky-listener")["spec"]
    one_of("Deployment", scaled["scaleTargetRef"]["name"])
    query = scaled["triggers"][0]["metadata"]["query"].encode()
    queue = Queue(db, rows=1)
    asking = connect("scheduler_listener")
    assert asking.execute(query).fetchone() == (0.0,)
    queue.set("Queued")
    (age,) = asking.execute(query).fetchone() or (0.0,)
    assert age > 3600
    db.execute("SELECT scheduler.pause('job')")
    assert asking.execute(query).fetchone() == (0.0,)
