"""Jars through Maven, into the cache of the tests: what the user's own repository has, or half has, does not matter.

Versions are pinned in the POMs beside this module; Maven compares what it downloads with the checksums of the registry.
"""

from pathlib import Path

from tests.support.services.process import cache, prepared


def jars(name: str, **properties: str) -> Path:
    """The folder of the jars that ``<name>-pom.xml`` asks for, downloaded once. Raises Unavailable."""
    pom = Path(__file__).with_name(f"{name}-pom.xml")
    settings = [f"-D{key}={value}" for key, value in properties.items()]
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory={}"]
    own = f"-Dmaven.repo.local={cache() / 'maven'}"
    return prepared("-".join([name, *properties.values()]), ["mvn", "-q", "-B", "-C", "-f", pom, own, *settings, *goal])
