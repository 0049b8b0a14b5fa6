"""What libraries said, word for word as seen, and what ckpt makes of it."""

import pytest

from ckpt.errors import NotAFolder, NotFound, NotThereYet, StorageError, UsageError
from ckpt.storage.errors import explain, shorten_error

_DENIED = (
    "When listing objects under key 'ck/' in bucket 'b': AWS Error ACCESS_DENIED during ListObjectsV2 operation: "
    "Access Denied (Request ID: F4VRce4AfKdt4BxxJWfKFeBrVapbEHLayetdTC5zKgpQGbE4ntvH)"
)
_NO_BUCKET = (
    "When listing objects under key 'nope/' in bucket 'nobucket': AWS Error NO_SUCH_BUCKET during ListObjectsV2 "
    "operation: The specified bucket does not exist (Request ID: F4VRce4AfKdt4BxxJWfKFeBrVapbEHLayetdTC5zK)"
)
_REFUSED = (
    "When listing objects under key 'x/' in bucket 'b': AWS Error NETWORK_CONNECTION during ListObjectsV2 operation: "
    "curlCode: 7, Could not connect to server; Details: Failed to connect to 127.0.0.1:1 after 0 ms"
)
_REGION = (
    "When listing objects under key 'x/' in bucket 'b': AWS Error UNKNOWN (HTTP status 301) during ListObjectsV2 "
    "operation: No response body. Looks like the configured region is 'us-east-1' while the bucket is located in "
    "'eu-west-1'."
)
_HDFS = (
    'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=stranger, '
    'access=READ_EXECUTE, inode=\\"/state\\":root:supergroup:drwx------\\n\\tat org.apache.hadoop.hdfs.Server.check'
)
_SHORTER = (
    "DownloadTo at position 400 for 100 bytes failed. Azure Error: [InvalidRange] 416 The range specified is invalid "
    "for the current size of the resource.\nThe range specified is invalid"
)
_NO_TOKEN = "DefaultAzureCredential: failed to get a token"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (OSError(_DENIED), StorageError, "x cannot be read: cure (AWS Error ACCESS_DENIED during ListObjectsV2 "
         "operation: Access Denied)"),
        (OSError(_NO_BUCKET), NotFound, "x does not exist: there is no such bucket; check its name and region"),
        (OSError(_REFUSED), StorageError, "x cannot be reached: check the host and the network "
         "(Failed to connect to 127.0.0.1:1 after 0 ms)"),
        (OSError(_REGION), StorageError, "x is in another region: give `storage_options` region=eu-west-1"),
        (FileNotFoundError("[Errno 2] Path does not exist 'b/x'. Detail: [errno 2] No such file"), NotThereYet,
         "x does not exist: check the path"),
        (NotADirectoryError("b/x"), NotAFolder, "x is not a folder: give the checkpoint's own folder"),
        (TimeoutError(), StorageError, "x cannot be reached: check the host and the network (TimeoutError)"),
        (RuntimeError("something\nwith a trace"), StorageError, "x cannot be read: something"),
        (OSError(_SHORTER), StorageError,
         "x cannot be read: DownloadTo at position 400 for 100 bytes failed."),
        (OSError(_NO_TOKEN), StorageError,
         "x cannot be read: cure (DefaultAzureCredential: failed to get a token)"),
        (RuntimeError(_HDFS), StorageError, "x cannot be read: cure (Permission denied: user=stranger, "
         'access=READ_EXECUTE, inode=\\"/state\\":root:supergroup:drwx------)'),
    ],
)  # fmt: skip
def test_what_was_said_becomes_one_line_with_a_cure(error, kind, text):
    made = explain(error, "x", "cure")

    assert type(made) is kind
    assert str(made) == text


@pytest.mark.parametrize("error", [NotFound("a"), StorageError("b"), UsageError("c")])
def test_errors_of_ckpt_itself_are_left_alone(error):
    assert explain(error, "x", "cure") is error


def test_long_words_are_cut():
    assert len(shorten_error(ValueError("x" * 5000))) == 160
