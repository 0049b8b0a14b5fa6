"""A Delta table's place and storage options, as delta-rs (the package ``deltalake``) takes them."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from ckpt.errors import UsageError, one_line
from ckpt.storage.locations import SchemeFamily, local_path
from ckpt.storage.uri import NO_OPTIONS, open_backend, parse_remote
from ckpt.texts import mask_secrets

if TYPE_CHECKING:
    from ckpt.storage.arrow import ArrowBackend

_S3: Mapping[str, str] = {
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "aws_region",
    "endpoint_override": "aws_endpoint_url",
    "anonymous": "aws_skip_signature",
    "force_virtual_addressing": "aws_virtual_hosted_style_request",
}
"""Storage options for S3, and the object_store crate's names for them."""
_PLAIN = "/!$&'()*+,;=:@~"
_BOTH_HAVE = frozenset({"scheme", "request_timeout", "connect_timeout"})  # in the endpoint, or of its own


def spell_for_delta_rs(uri: str, options: Mapping[str, str] = NO_OPTIONS) -> tuple[str, dict[str, str]]:
    """Spell a place and its storage options. Raises UsageError where delta-rs cannot be told.

    Local disks, S3 and HDFS are those where its commit is known to fail if another one came first. It decodes paths
    twice, and those of HDFS not at all where it lists (deltalake 1.6.6).
    """
    local = local_path(uri)
    if "%" in (local or parse_remote(uri).path):
        raise UsageError(f"{one_line(mask_secrets(uri))}: delta-rs does not find tables below a name with %")
    if local is not None:
        return os.path.abspath(local), {}
    remote = parse_remote(uri)
    options = {**remote.query, **options}
    if remote.family == SchemeFamily.HDFS and remote.scheme == "hdfs" and not options and not remote.user:
        if quote(remote.path, safe=_PLAIN) != remote.path:
            raise UsageError(f"{remote.shown}: delta-rs does not find tables of HDFS below such a name")
        return f"hdfs://{remote.host}/{remote.path}", {}
    if remote.family != SchemeFamily.S3:
        raise UsageError(f"{remote.shown}: ckpt commits to Delta tables only on local disks, S3 and HDFS")
    key, _, secret = remote.user.partition(":")
    if secret:
        options = {"access_key": unquote(key), "secret_key": unquote(secret), **options}
    unknown = sorted(options.keys() - _S3.keys() - _BOTH_HAVE)
    if unknown:
        raise UsageError.of(
            "{--storage-options} {unknown}: delta-rs has no such option for S3", unknown=one_line(unknown[0])
        )
    spelled = {_S3[name]: value for name, value in options.items() if name in _S3}
    endpoint = options.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL_S3")
    if endpoint:
        scheme = options.get("scheme", "https")
        spelled["aws_endpoint_url"] = endpoint = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if (endpoint or os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http:"):
        spelled["aws_allow_http"] = "true"
    backend: ArrowBackend = open_backend(uri, options)[2]  # type: ignore[assignment]
    spelled.setdefault("aws_region", backend.file_system.region)
    return f"s3://{remote.host}/{quote(remote.path)}", spelled
