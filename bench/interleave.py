"""Times contenders in turns, A B C A B C …, so that whatever the machine does to one it does to all.

A turn is a pause in which the others' workers go to sleep, a call that is not counted, then counted
calls: one, or, of a short call, as many as fill TURN seconds. What counts is the median of a
contender's calls over all rounds."""
import statistics
import time

PAUSE, TURN, MOST_IN_TURN = 0.004, 0.004, 50
WARM_BELOW = 0.25  # a longer call is not warmed up: its start does not show


clock = time.perf_counter


def count_processor_time():
    """Times are what the process's threads together spent on processors: on a machine that others use,
    the ratios of rows with one thread still mean something. Spinning counts."""
    global clock
    clock = time.process_time


def once(call):
    start = clock()
    call()
    return clock() - start


class Timing:
    """`first` is a call's time as seen when the results were checked: a contender that would take all its
    time for one call more is not called again, and has that one sample."""

    def __init__(self, contender, first, rounds, allowed):
        self.contender, self.samples, self.rounds = contender, [], 1
        if first > allowed:
            self.samples, self.rounds = [first], 0
            return
        estimate = min(first, once(contender.call)) if first < WARM_BELOW else first
        self.warm = estimate < WARM_BELOW
        self.each = max(1, min(MOST_IN_TURN, int(TURN / max(estimate, 1e-7))))
        self.rounds = max(1, min(rounds, int(allowed / (PAUSE + estimate * (self.each + self.warm)))))

    def turn(self):
        time.sleep(PAUSE)
        if self.warm:
            self.contender.call()
        self.samples += [once(self.contender.call) for _ in range(self.each)]
        self.contender.rest()

    def summary(self):
        s = sorted(self.samples)
        return {"median": statistics.median(s), "min": s[0], "max": s[-1], "n": len(s), "rounds": self.rounds}


class RoofTiming:
    """The triad takes its turns among the contenders; its seconds come from its own clock."""

    def __init__(self, roof, rounds):
        self.roof, self.rounds = roof, rounds
        self.samples = {store: [] for store in roof.STORES}
        once(lambda: roof.seconds(roof.STORES[0], 2))
        took = min(min(roof.seconds(store, 2)) for store in roof.STORES)
        self.each = max(1, min(MOST_IN_TURN, int(TURN / max(took, 1e-7))))

    def turn(self):
        time.sleep(PAUSE)
        for store in self.samples:
            self.samples[store] += self.roof.seconds(store, self.each + 1)[1:]

    def gbps(self):
        """The better kind of store, by its median."""
        return max(self.roof.bytes / statistics.median(s) * 1e-9 for s in self.samples.values())


def run(contenders, first, roof, rounds, budget):
    """({name: summary}, the roof in GB/s) after at most about `budget` seconds."""
    allowed = budget / len(contenders)
    timings = {name: Timing(c, first[name], rounds, allowed) for name, c in contenders.items()}
    ceiling = RoofTiming(roof, rounds)
    most = max(1, *(t.rounds for t in timings.values()))
    for k in range(most):
        for t in timings.values():
            # one with fewer rounds has them spread over the whole
            if (k + 1) * t.rounds // most > k * t.rounds // most:
                t.turn()
        if k < rounds:
            ceiling.turn()
    return {name: t.summary() for name, t in timings.items()}, ceiling.gbps()
