"""What the suite times: something that runs a case, over and over, on given inputs.

`call` runs once. `results` gives the results of the last call as arrays, in the order of the
signature. `compile_s` is the time of making it ready where that means compiling, else None."""


class Absent(Exception):
    """This contender is not here, or has nothing for this case; the text says why."""


class NoForm(Absent):
    """It is here, and the case is not for it: nothing to report."""


class Contender:
    compile_s = None

    def call(self):
        raise NotImplementedError

    def results(self):
        raise NotImplementedError

    def rest(self):
        """Another's turn: results need not be kept."""

    def close(self):
        """Gives back what it holds. It is not called again."""


class Function(Contender):
    """A plain function of no arguments that returns its results; `array` makes one an array."""

    def __init__(self, function, array, compile_s=None):
        self.function, self.array, self.compile_s = function, array, compile_s
        self.got = None

    def call(self):
        self.got = None  # free before the next is made, as a loop over layers would
        self.got = self.function()

    def results(self):
        many = self.got if isinstance(self.got, tuple) else (self.got,)
        return [self.array(x) for x in many]

    def rest(self):
        self.got = None

    def close(self):
        self.function = self.got = None
