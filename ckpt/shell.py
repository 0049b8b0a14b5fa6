"""Words for a shell: what ckpt prints to be typed again must mean the same there, whatever a folder is called."""

import os
import shlex

from ckpt.secrets import masked


def quoted(word: str) -> str:
    r"""``word`` as one word of a shell command, which no shell obeys; without the secrets in it.

    What cannot be shown, and the backquote that marks commands in sentences, become escapes of ``$'...'`` (bash,
    zsh, ksh).

    >>> print(quoted("my ckpt;touch x"), quoted("a\nb"))
    'my ckpt;touch x' $'a\012b'
    """
    word = masked(word)
    if word.isprintable() and "`" not in word:
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def quoted_path(path: str) -> str:
    """The same for a path, which no program takes for an option: ``./-rf``."""
    return quoted(f"./{path}" if path.startswith("-") else path)


def _escaped(char: str) -> str:
    if char.isprintable() and char not in "\\'`":
        return char
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
