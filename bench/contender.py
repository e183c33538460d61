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


class Rotating(Contender):
    """A function for each of several sets of inputs, called in turn, so that no cache has what a call
    reads. A function gives all that it has written, inouts first; that lives until its next turn, so that
    results rotate too."""

    def __init__(self, functions, compile_s=None):
        self.functions, self.compile_s = functions, compile_s
        self.kept, self.turn = [()] * len(functions), 0

    @property
    def sets(self):
        return len(self.functions)

    def call(self):
        k = self.turn
        self.turn = (k + 1) % self.sets
        self.kept[k] = ()
        got = self.functions[k]()
        self.kept[k] = got if isinstance(got, tuple) else (got,)

    def results(self):
        """Of the last call."""
        return list(self.kept[self.turn - 1])

    def rest(self):
        self.kept = [()] * self.sets

    def close(self):
        self.functions, self.kept = [], []


class Side:
    """A contender's library: what version it is, how it makes a case ready, and how it sets threads."""

    def __init__(self, version, make, threads=lambda n: None):
        self.version, self.make, self.threads = version, make, threads
