import time

from ckpt.formats.names import parse_java_int, parse_java_long, sort_batch_names


def test_a_usual_folder():
    found = sort_batch_names(["10", "9", ".9.crc", "README", "..tmp", "8.tmp", "_SUCCESS"])
    assert (found.ids, found.odd) == ((9, 10), {})
    assert found.others == (".9.crc", "README", "..tmp", "8.tmp", "_SUCCESS")


def test_names_that_spark_counts_and_never_finds():
    found = sort_batch_names(["7", "007", "+5", "\u0661"])
    assert found.ids == (7,)
    assert found.odd == {"007": 7, "+5": 5, "\u0661": 1}


def test_negative_ids_are_names_that_spark_writes():
    assert sort_batch_names(["-1", "-0"]).ids == (-1,)


def test_the_ends_of_java_numbers():
    assert parse_java_long("9223372036854775807") == 2**63 - 1
    assert parse_java_long("-9223372036854775808") == -(2**63)
    assert parse_java_long("9223372036854775808") is None
    assert parse_java_long("-9223372036854775809") is None
    assert parse_java_int("2147483647") == 2**31 - 1
    assert parse_java_int("2147483648") is None
    assert [parse_java_long(text) for text in ("", "+", "-", "1 ", "1_0", "--1")] == [None] * 6


def test_100_000_names_take_no_square_of_their_number():
    names = [str(number) for number in range(100_000)]
    started = time.process_time()
    assert len(sort_batch_names(names).ids) == 100_000
    assert time.process_time() - started < 5
