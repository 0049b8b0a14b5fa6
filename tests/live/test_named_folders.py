"""A finding about a source that has a name is at the folder of that name in the checkpoint."""

from ckpt.live.records import LiveSource, NotAsked


def test_the_folder_of_a_source_is_its_name_or_its_number() -> None:
    asked = NotAsked("nobody")
    assert LiveSource(0, asked, "alpha").folder == "sources/alpha"
    assert LiveSource(1, asked).folder == "sources/1"
