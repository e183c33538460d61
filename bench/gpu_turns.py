"""Times contenders on a GPU in pairs, A B B A, so that neither is always the one that follows the other:
what ran before decides the clock. A block is some milliseconds of one contender's calls, captured in a
CUDA graph where that can be done, between two events.

hot: the four blocks follow each other without a gap. cool: each comes after the GPU was idle for COOL
seconds. A ratio is the median of those of the quadruples."""
import ctypes
import statistics
import time

BLOCK, QUADRUPLES = 6e-3, 7
MAYBE_SHORT, AGAIN = 0.1, 1.0  # seconds of a first call that is not believed at once
COOL, COOL_QUADRUPLES = 0.08, 3


class Device:
    """Blocks on a GPU. `start` gives a function that waits for the block and tells its seconds."""
    captures = True
    block = BLOCK

    def __init__(self):
        import torch
        self.torch = torch

    def start(self, unit, units):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(units):
            unit()
        end.record()
        return lambda: self.elapsed(begin, end)

    @staticmethod
    def elapsed(begin, end):
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def wait(self):
        self.torch.cuda.synchronize()

    def capture(self, contender):
        """What replays a call for each of a contender's sets, or None where its calls do not let themselves be
        captured."""
        graph = self.torch.cuda.CUDAGraph()
        for _ in range(2 * contender.sets):
            contender.call()
        self.wait()
        try:
            with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(contender.sets):
                    contender.call()
        except Exception:  # whatever a library says of it: it runs as it did before
            self.wait()
            return None
        return graph

    def launches(self, contender):
        """How many kernels a call launches, counted in a graph of it that never runs; None where that can't be told.
        A plan has several forms of a kernel, of which a launch takes one."""
        try:
            graph = self.torch.cuda.CUDAGraph(keep_graph=True)
            with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
                contender.call()
            return kernel_nodes(ctypes.c_void_p(graph.raw_cuda_graph()))
        except Exception:  # as in capture
            self.wait()
            return None


def kernel_nodes(graph):
    cuda, n, kind, kernels = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(), ctypes.c_int(), 0
    if cuda.cuGraphGetNodes(graph, None, ctypes.byref(n)):
        return None
    nodes = (ctypes.c_void_p * n.value)()
    if cuda.cuGraphGetNodes(graph, nodes, ctypes.byref(n)):
        return None
    for node in nodes:
        if cuda.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)):
            return None
        kernels += kind.value == 0  # CU_GRAPH_NODE_TYPE_KERNEL
    return kernels


class Host:
    """Blocks of what has a queue of its own, or none: by the host's clock, until all is done."""
    captures = False
    block = 2 * BLOCK  # waiting is in it

    def __init__(self, wait):
        self.wait = wait

    def start(self, unit, units):
        self.wait()
        begin = time.perf_counter()
        for _ in range(units):
            unit()
        self.wait()
        took = time.perf_counter() - begin
        return lambda: took


class Runner:
    """A contender ready for blocks: what a unit is, how many calls that makes, and how many units fill a block."""

    def __init__(self, contender, device, first):
        self.contender = contender
        self.clock = getattr(contender, "clock", None) or device
        self.unit, self.calls, self.captured = contender.call, getattr(contender, "calls", 1), None
        self.samples, self.units = [], 1
        # the first call may have told more of its start than of itself
        short = self.clock.captures and first < MAYBE_SHORT and self.clock.start(contender.call, 1)() < BLOCK
        graph = self.clock.capture(contender) if short else None
        if graph is not None:
            self.unit, self.calls, self.captured = graph.replay, contender.sets, graph

    def fit(self):
        """Warms up; then as many units a block as fill it."""
        seconds = self.block(1)()
        seconds = min(seconds, self.block(1)()) if seconds < AGAIN else seconds
        self.units = max(1, int(self.clock.block / seconds)) if seconds > 0 else 1
        if self.units > 1:  # a short one may have told more of its start than of itself
            self.units = max(1, int(self.clock.block * self.units / self.block(self.units)()))
        self.fitted = seconds / self.calls
        return seconds * self.units

    def block(self, units=None):
        return self.clock.start(self.unit, units or self.units)

    def per_call(self, seconds):
        return seconds / (self.units * self.calls)


def quadruple(device, a, b, idle):
    """Seconds a call of a and of b, each the mean of two blocks."""
    waits = []
    for runner in (a, b, b, a):
        if idle:
            device.wait()
            time.sleep(idle)
        waits.append(runner.block())
    ta, tb, tb2, ta2 = (r.per_call(w()) for r, w in zip((a, b, b, a), waits))
    a.samples += [ta, ta2]
    b.samples += [tb, tb2]
    return (ta + ta2) / 2, (tb + tb2) / 2


def pair(device, a, b, quadruples, idle=0.0):
    """The ratio b/a: above 1, a is faster. The first quadruple warms up and does not count."""
    if not idle:
        quadruple(device, a, b, idle)
        del a.samples[-2:], b.samples[-2:]
    ratios = [tb / ta for ta, tb in (quadruple(device, a, b, idle) for _ in range(quadruples))]
    return statistics.median(ratios)


def summary(runner, rounds):
    s = sorted(runner.samples or [runner.fitted])
    return {"median": statistics.median(s), "min": s[0], "max": s[-1], "n": len(s), "rounds": rounds}


def run(device, contenders, first, mine, budget, cool=True):
    """Times `mine` against each of the others: ({name: summary}, {name: ratio hot}, {name: ratio cool}, {names that
    were captured}). Only the best peer is timed cool too."""
    runners = {n: Runner(c, device, first[n]) for n, c in contenders.items()}
    block = {n: r.fit() for n, r in runners.items()}
    others = [n for n in runners if n != mine]
    hot, rounds = {}, {mine: 0}
    for n in others:
        took = 2 * (block[mine] + block[n])
        rounds[n] = min(QUADRUPLES, int(budget / len(others) / took) - 1)
        if rounds[n] < 1:
            rounds[n], hot[n] = 0, runners[n].fitted / runners[mine].fitted
            continue
        hot[n] = pair(device, runners[mine], runners[n], rounds[n])
        rounds[mine] = max(rounds[mine], rounds[n])
    if not others:
        runners[mine].samples = [runners[mine].per_call(runners[mine].block()()) for _ in range(QUADRUPLES)]
    timed = {n: summary(r, rounds[n]) for n, r in runners.items()}
    cooled = {}
    peers = [n for n in others if n != "roof"]
    if cool and peers and rounds[mine]:
        best = min(peers, key=hot.get)
        cooled[best] = pair(device, runners[mine], runners[best], COOL_QUADRUPLES, COOL)
    return timed, hot, cooled, {n for n, r in runners.items() if r.captured is not None}
