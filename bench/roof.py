"""native/roof.c from Python: the triad's rate over as many bytes as a case touches, and the peak rates
of multiply-adds that never leave the registers."""
import ctypes
from ctypes import byref, c_double, c_int, c_size_t, c_uint, c_void_p

MOST_BYTES = 768 << 20  # far beyond every cache: more shows nothing new
LEAST_BYTES = 256 << 10


class Machine:
    def __init__(self, room):
        self.lib = ctypes.CDLL(str(room / "libroof.so"))
        self.lib.roof_f32.restype = self.lib.roof_bf16.restype = c_double
        self.lib.roof_new.restype, self.lib.roof_new.argtypes = c_void_p, [c_size_t, c_void_p]
        self.lib.roof_free.argtypes = [c_void_p]
        self.lib.roof_triad.argtypes = [c_void_p, c_size_t, c_uint, c_int, c_int, c_void_p]
        self.best = {}

    def peak(self, dtype, threads):
        """GFLOP/s, the best seen so far: it is asked again and again over a run. 0: not known."""
        measure = self.lib.roof_bf16 if dtype == "bf16" else self.lib.roof_f32
        key = dtype, threads
        self.best[key] = max(self.best.get(key, 0), measure(c_uint(threads)))
        return self.best[key]

    def triad(self, bytes, threads):
        return Triad(self.lib, min(max(bytes, LEAST_BYTES), MOST_BYTES), threads)


class Triad:
    STORES = (0, 1)  # plain, streaming

    def __init__(self, lib, bytes, threads):
        n = c_size_t()
        self.lib, self.threads = lib, threads
        self.arrays = lib.roof_new(bytes, byref(n))
        if not self.arrays:
            raise MemoryError(f"{bytes} bytes for the triad")
        self.n, self.bytes = n.value, 12 * n.value

    def seconds(self, store, repeats):
        out = (c_double * repeats)()
        if self.lib.roof_triad(self.arrays, self.n, self.threads, store, repeats, out) != 0:
            raise RuntimeError("the triad's threads can't be had")
        return list(out)

    def close(self):
        self.lib.roof_free(self.arrays)
        self.arrays = None
