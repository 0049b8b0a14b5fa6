"""The functions at the end of ``processor.py``, each written where it is needed."""

PLAIN_PANDAS = '''

def plain(value: Any) -> Any:
    """What pandas and NumPy made of a value, as Python's own types again."""
    if isinstance(value, dict):
        return {plain(name): plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value'''

PLAIN_ROW = '''

def plain(value: Any) -> Any:
    """A value with its maps as dictionaries: they come as lists of pairs."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return {key: plain(one) for key, one in value}
        return [plain(one) for one in value]
    return value'''

MILLISECONDS = '''

def milliseconds(moment: datetime) -> int:
    """A time in the zone of the session, which is UTC, in ms since 1970."""
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    return since // timedelta(milliseconds=1)'''

UTC = '''

def utc() -> None:
    """Times in keys and state would be shifted if Python treated them as local."""
    if time.timezone or time.daylight:
        raise RuntimeError("Python workers need TZ=UTC in their environment")'''
