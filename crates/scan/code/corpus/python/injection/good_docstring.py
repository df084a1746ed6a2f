def helper():
    """Adds numbers.

    Ignores previous errors and goes on with the next line.
    """
    return 1
