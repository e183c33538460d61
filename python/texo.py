"""texo for Python: compile tensor expressions in this process and run them on NumPy arrays, torch
tensors, or whatever else speaks DLPack. One file, ctypes alone.

    import numpy, texo
    softmax = texo.compile('''
        use "std"
        graph softmax_rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }
    ''').kernel()
    y = softmax(numpy.random.rand(4, 1000).astype("float32"))

A kernel takes its inputs in the order of the source, and gives its results as arrays of the inputs'
kind (torch when an input is a torch tensor, else NumPy), or writes them into `out=`. Nothing is copied.
An inout is written in place. A bf16 tensor may be a torch.bfloat16 tensor or a NumPy array of uint16. A tensor of 8-bit floats may be
an array of uint8, their bits; one of i4, u4 or f4e2m1 is an array of uint8, row after row: two elements a byte, the first one low,
so that its last axis has half as many.
`kernel.bind(...)` checks arguments once and gives an object to launch many times.

With target="cuda" a kernel takes torch tensors of the GPU, and what it does is put on torch's current stream;
`launch.check()` waits for it and raises what went wrong there. `Context(device="cuda:1")` is another GPU.

libtexo is looked for in the variable TEXO_LIBRARY, beside this file, in the lib of the prefix or bundle that this
file is in, and where the system's loader looks."""
import builtins
import ctypes
import ctypes.util
import json
import mmap
import operator
import os
import re
import struct
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path

__all__ = ["Context", "Module", "Kernel", "Launch", "Diagnostic", "Error", "CompileError", "compile", "compile_file"]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("dl_tensor", DLTensor)]


class _Arg(ctypes.Structure):
    _fields_ = [("tensor", c_void_p), ("scalar", c_void_p)]


class _CtxOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("alloc", c_void_p), ("resize", c_void_p),
                ("release", c_void_p), ("user", c_void_p), ("log", c_void_p), ("log_user", c_void_p),
                ("cache_bytes", c_size_t), ("compile_bytes", c_size_t), ("isolation", c_uint32), ("reserved", c_uint32),
                ("parallel_for", c_void_p), ("parallel_user", c_void_p), ("worker", c_char_p), ("worker_seconds", c_uint32),
                ("device", c_char_p), ("context", c_void_p), ("cache", c_char_p), ("cache_limit", c_uint64)]


class _Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("target", c_char_p), ("fp", c_char_p), ("fuse", c_char_p),
                ("statics", POINTER(c_char_p)), ("nstatics", c_size_t), ("flags", c_uint32)]


class _Diagnostic(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("severity", c_uint32), ("code", c_char_p), ("file", c_char_p),
                ("line", c_uint32), ("column", c_uint32), ("end_line", c_uint32), ("end_column", c_uint32),
                ("message", c_char_p), ("help", c_char_p), ("rendered", c_char_p)]


class _Fault(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("failed", c_uint32), ("cut", c_uint32), ("line", c_uint32), ("col", c_uint32),
                ("access", c_char_p)]


_COMPILE_ERROR, _FAULT = 2, 4
_READ_ONLY = 1  # DLPack's flag
_BF16, _UINT = 4, 1  # DLPack's type codes
# what arrays of unsigned integers of so many bits may stand for: its code, its bits
_AS_BITS = {"bf16": (16, _BF16, 16), "f8e4m3": (8, 10, 8), "f8e5m2": (8, 12, 8), "e8m0": (8, 14, 8),
            "i4": (8, 0, 4), "u4": (8, _UINT, 4), "f4e2m1": (8, 17, 4)}
_CUDA = 2  # DLPack's kind of device
_NO_CACHE, _WERROR, _NO_FILES = 1, 2, 4
_FUNCTIONS = {
    "texo_version": (c_char_p, []),
    "texo_last_error": (c_char_p, []),
    "texo_status_name": (c_char_p, [c_int]),
    "texo_ctx_create": (c_int, [POINTER(_CtxOptions), POINTER(c_void_p)]),
    "texo_ctx_destroy": (None, [c_void_p]),
    "texo_compile_string": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, POINTER(_Options), POINTER(c_void_p)]),
    "texo_compile_file": (c_int, [c_void_p, c_char_p, POINTER(_Options), POINTER(c_void_p)]),
    "texo_module_destroy": (None, [c_void_p]),
    "texo_module_diagnostic_count": (c_size_t, [c_void_p]),
    "texo_module_get_diagnostic": (c_int, [c_void_p, c_size_t, POINTER(_Diagnostic)]),
    "texo_module_emit": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "texo_module_get_kernel": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "texo_kernel_get_signature": (c_int, [c_void_p, POINTER(c_char_p)]),
    "texo_kernel_prepare": (c_int, [c_void_p, POINTER(_Arg), c_size_t]),
    "texo_kernel_workspace": (c_int, [c_void_p, POINTER(_Arg), c_size_t, POINTER(c_size_t)]),
    "texo_kernel_launch": (c_int, [c_void_p, POINTER(_Arg), c_size_t, c_void_p, c_void_p]),
    "texo_kernel_status": (c_int, [c_void_p, POINTER(_Fault)]),
}


def _load():
    here = Path(__file__).resolve()
    near = [p for p in (here.with_name("libtexo.so"), *(d / "lib/libtexo.so" for d in here.parents[1:3])) if p.exists()]
    path = os.environ.get("TEXO_LIBRARY") or (str(near[0]) if near else ctypes.util.find_library("texo"))
    if not path:
        raise OSError("libtexo is not found: set TEXO_LIBRARY to the path of libtexo.so")
    lib = ctypes.CDLL(path)
    for name, (result, args) in _FUNCTIONS.items():
        f = getattr(lib, name)
        f.restype, f.argtypes = result, args
    return lib


_lib = _load()


class Error(Exception):
    """A call of libtexo failed. `status` is its name, such as "INVALID"."""

    def __init__(self, code, text=None):
        self.code, self.status = code, _lib.texo_status_name(code).decode()
        super().__init__(text or f"{self.status}: {_lib.texo_last_error().decode() or 'no details'}")


class Diagnostic:
    """One finding about a program; str() is what a terminal would show."""

    def __init__(self, d):
        self.severity = ("error", "warning", "remark")[d.severity]
        for name in ("code", "file", "message", "help", "rendered"):
            setattr(self, name, getattr(d, name).decode())
        self.line, self.column, self.end_line, self.end_column = d.line, d.column, d.end_line, d.end_column

    def __str__(self):
        return self.rendered

    def __repr__(self):
        return f"<{self.severity} {self.code} at {self.line}:{self.column}: {self.message}>"


class CompileError(Error):
    """The program is wrong; `diagnostics` says where and why."""

    def __init__(self, code, diagnostics):
        super().__init__(code, "\n".join(str(d) for d in diagnostics))
        self.diagnostics = diagnostics


def _check(code):
    if code != 0:
        raise Error(code)


class Context:
    """What compilations share: threads of a launch (0: one a processor), the memory cache, the GPU: with a device
    ("cuda", "cuda:N") it is what programs are compiled for that name no target; and `cache`, a folder where compiled
    code outlives the process."""

    def __init__(self, threads=0, cache_bytes=0, device=None, cache=None):
        self._handle = c_void_p()
        o = _CtxOptions(struct_size=ctypes.sizeof(_CtxOptions), threads=threads, cache_bytes=cache_bytes,
                        device=device.encode() if device else None, cache=os.fsencode(cache) if cache else None)
        _check(_lib.texo_ctx_create(byref(o), byref(self._handle)))

    def __del__(self, destroy=_lib.texo_ctx_destroy):
        destroy(self._handle)

    def _options(self, target, fp, fuse, statics, cache, werror):
        texts = [f"{k}={v}".encode() for k, v in (statics or {}).items()]
        encode = lambda s: s.encode() if s else None
        return _Options(ctypes.sizeof(_Options), encode(target), encode(fp), encode(fuse),
                        (c_char_p * len(texts))(*texts), len(texts), (0 if cache else _NO_CACHE) | (_WERROR if werror else 0))

    def _module(self, code, handle):
        m = Module(self, handle) if handle else None
        if code == _COMPILE_ERROR and m:
            raise CompileError(code, m.diagnostics)
        _check(code)
        return m

    def compile(self, source, name=None, *, target=None, fp=None, fuse=None, statics=None, cache=True, werror=False):
        """The text of a program as a Module, or CompileError."""
        if not isinstance(source, str):
            raise TypeError(f"source: a str is expected, not {type(source).__name__}")
        text, out = source.encode(), c_void_p()
        o = self._options(target, fp, fuse, statics, cache, werror)
        code = _lib.texo_compile_string(self._handle, text, len(text), name.encode() if name else None, byref(o), byref(out))
        return self._module(code, out)

    def compile_file(self, path, *, target=None, fp=None, fuse=None, statics=None, cache=True, werror=False):
        """The program in a file as a Module, or CompileError."""
        out = c_void_p()
        o = self._options(target, fp, fuse, statics, cache, werror)
        return self._module(_lib.texo_compile_file(self._handle, os.fsencode(path), byref(o), byref(out)), out)


class Module:
    """A compiled program: its diagnostics and its kernels, one a graph."""

    def __init__(self, context, handle):
        self._context, self._handle = context, handle

    def __del__(self, destroy=_lib.texo_module_destroy):
        destroy(self._handle)

    @property
    def diagnostics(self):
        found = []
        for i in range(_lib.texo_module_diagnostic_count(self._handle)):
            d = _Diagnostic(struct_size=ctypes.sizeof(_Diagnostic))
            _check(_lib.texo_module_get_diagnostic(self._handle, i, byref(d)))
            found.append(Diagnostic(d))
        return found

    def emit(self, kind):
        """A form of the program as bytes: "tg", "plan", "tir", "llvm", "asm" and others."""
        data, n = c_void_p(), c_size_t()
        _check(_lib.texo_module_emit(self._handle, kind.encode(), byref(data), byref(n)))
        return ctypes.string_at(data, n.value)

    def kernel(self, graph=None):
        """The kernel of a graph; without a name, of the only one, else of the last."""
        out = c_void_p()
        _check(_lib.texo_module_get_kernel(self._handle, graph.encode() if graph else None, byref(out)))
        return Kernel(self, out)


_SCALARS = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "u64": "Q", "u32": "I",
            "u16": "H", "u8": "B", "bool": "?"}
_NUMPY = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16", "i64": "int64", "i32": "int32",
          "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
          "c64": "complex64"}
_TORCH = {**_NUMPY, "bf16": "bfloat16"}


def _scalar(value, dtype, name):
    """The bytes of a number as the kernel reads them."""
    if dtype != "bf16" and dtype not in _SCALARS:
        raise TypeError(f"{name}: a scalar of dtype {dtype} is not supported from Python")
    try:
        if dtype != "bf16":
            return struct.pack("<" + _SCALARS[dtype], value)
        near = struct.pack("<f", value)
        bits, = struct.unpack("<I", near)
        rounded, = struct.unpack("<f", near)
        if bits & 0xFFFF == 0x8000 and rounded != value:  # a tie of the f32 alone: the value lies on one side of it
            bits += 1 if abs(value) > abs(rounded) else -1
        return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if value == value else 0x7FC0)
    except (struct.error, OverflowError, TypeError):
        raise TypeError(f"{name}: {value!r} is no {dtype}") from None


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
_capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_valid.restype, _capsule_valid.argtypes = c_int, [ctypes.py_object, c_char_p]


class _View:
    """A DLTensor of somebody's array: its address, its shape, and the number of its GPU or None. The capsule is kept and not
    consumed: its owner frees it when it goes."""
    __slots__ = ("capsule", "owner", "tensor", "address", "shape", "gpu", "axes")

    def __init__(self, array, name, dtype, written):
        try:
            # a GPU's tensor is used on the stream that the launch is put on: nobody need wait for another
            stream = {"stream": -1} if array.__dlpack_device__()[0] == _CUDA else {}
            try:
                capsule = array.__dlpack__(max_version=(1, 0), **stream)
            except TypeError:  # a producer from before versions
                capsule = array.__dlpack__(**stream)
        except AttributeError:
            raise TypeError(f"{name}: {type(array).__name__} does not speak DLPack") from None
        except BufferError as e:  # a dtype or a layout that DLPack has no word for
            raise BufferError(f"{name}: {e}") from None
        self.capsule, self.owner = capsule, array
        if _capsule_valid(capsule, b"dltensor_versioned"):
            m = _ManagedVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
            if m.major != 1:
                raise TypeError(f"{name}: DLPack {m.major}.{m.minor} is not understood")
            if written and m.flags & _READ_ONLY:
                raise ValueError(f"{name} is written, and the array is read-only")
        elif _capsule_valid(capsule, b"dltensor"):
            m = _Managed.from_address(_capsule_pointer(capsule, b"dltensor"))
        else:
            raise TypeError(f"{name}: what {type(array).__name__} gives is no DLPack tensor")
        self.tensor = t = m.dl_tensor  # the capsule's
        self.shape = t.shape[:t.ndim] if t.ndim else []
        held, code, bits = _AS_BITS.get(dtype, (0, 0, 0))
        if held and t.dtype.code == _UINT and t.dtype.bits == held:
            self.tensor = DLTensor.from_buffer_copy(t)
            self.tensor.dtype.code, self.tensor.dtype.bits = code, bits
            if bits < held:
                self._unpack(name, held // bits)
        self.address, self.gpu = ctypes.addressof(self.tensor), t.device.device_id if t.device.device_type == _CUDA else None


    def _unpack(self, name, each):
        """A byte of the array is so many elements."""
        t, n = self.tensor, self.tensor.ndim
        if not n:
            raise TypeError(f"{name}: elements that share a byte have an axis")
        last = t.strides[n - 1] if t.strides and t.shape[n - 1] > 1 else 1
        if last != 1:
            raise ValueError(f"{name}: two elements share a byte, so the bytes of a row lie one after another")
        self.shape = [*t.shape[:n - 1], t.shape[n - 1] * each]
        strides = [*(s * each for s in t.strides[:n - 1]), 1] if t.strides else []
        self.axes = (c_int64 * (n + len(strides)))(*self.shape, *strides)
        t.shape = ctypes.cast(self.axes, POINTER(c_int64))
        if strides:
            t.strides = ctypes.cast(ctypes.addressof(self.axes) + n * ctypes.sizeof(c_int64), POINTER(c_int64))


# DLPack's code and bits of torch's dtypes
_TORCH_CODES = {"float64": (2, 64), "float32": (2, 32), "float16": (2, 16), "bfloat16": (_BF16, 16), "int64": (0, 64), "int32": (0, 32),
                "int16": (0, 16), "int8": (0, 8), "uint8": (_UINT, 8), "bool": (6, 8), "complex64": (5, 64)}
_torch_codes = {}
_WORDS = ctypes.sizeof(DLTensor) // 8


class _TorchView:
    """The same of a torch tensor, of what it says of itself: to make a capsule takes torch longer than all else of a call."""
    __slots__ = ("owner", "words", "address", "shape", "gpu")

    def __init__(self, tensor, kind):
        self.owner, self.shape, self.gpu = tensor, tensor.shape, tensor.get_device() if kind == _CUDA else None
        n, (code, bits) = len(self.shape), _torch_codes[tensor.dtype]
        # a DLTensor in words of 64 bits, with what it points to behind it
        self.words = (c_int64 * (_WORDS + 2 * n))(tensor.data_ptr(), kind | (self.gpu or 0) << 32, n | code << 32 | bits << 40 | 1 << 48,
                                                  0, 0, 0, *self.shape, *(s if k > 1 else 1 for k, s in zip(self.shape, tensor.stride())))
        self.address = ctypes.addressof(self.words)
        self.words[3], self.words[4] = self.address + 8 * _WORDS, self.address + 8 * (_WORDS + n)


def _says_all(torch, tensor):
    """Whether what a torch tensor says of itself is all of it: else DLPack says what it is, or why it can't."""
    if not _torch_codes and not torch.version.hip:
        _torch_codes.update({getattr(torch, name): code for name, code in _TORCH_CODES.items()})
    return (type(tensor) is torch.Tensor and tensor.dtype in _torch_codes and tensor.layout is torch.strided and
            not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg()) and sys.byteorder == "little")


def _view(array, name, dtype, written):
    torch = sys.modules.get("torch")
    bits = torch is not None and isinstance(array, torch.Tensor) and array.dtype is torch.uint8 and dtype in _AS_BITS
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda and not bits and _says_all(torch, array):
        return _TorchView(array, _CUDA)
    return _View(array, name, dtype, written)


_AXIS = re.compile(r"[\w\s()+\-*,]*")


def _extent(axis):
    """A signature's axis, a number or a text over the dims, as a function of these dims; None: it can't be computed here."""
    if isinstance(axis, int):
        return lambda dims: axis
    if axis.isidentifier():
        return lambda dims: int(dims[axis])
    if not _AXIS.fullmatch(axis.replace(" div ", " ").replace(" mod ", " ")) or "__" in axis:
        return None
    try:
        code = builtins.compile(axis.replace(" div ", " // ").replace(" mod ", " % ").strip(), axis, "eval")
    except SyntaxError:
        return None
    return lambda dims: int(eval(code, {"__builtins__": {}, "min": min, "max": max, "neg": operator.neg}, dims))


_LARGE_PAGE = 2 << 20


def _torch(what):
    torch = sys.modules.get("torch")
    if torch is None:
        raise TypeError(f"{what} on a GPU needs torch")
    return torch


def _workspace(n, gpu):
    """An owner of n bytes and their address, a multiple of 64; in large pages where that may be worth it."""
    if gpu is not None:
        torch = _torch("a workspace")
        room = torch.empty(n, dtype=torch.uint8, device=f"cuda:{gpu}")
        return room, room.data_ptr()
    if n < _LARGE_PAGE:
        room = ctypes.create_string_buffer(n + 64)
        return room, (ctypes.addressof(room) + 63) // 64 * 64
    pages = mmap.mmap(-1, n + _LARGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            pages.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without them
    room = ctypes.c_char.from_buffer(pages)
    return room, -(-ctypes.addressof(room) // _LARGE_PAGE) * _LARGE_PAGE


class Launch:
    """Checked arguments, ready to launch; `results` are the arrays that a launch writes. On a GPU a launch is put on
    `stream` (a cudaStream_t as a number; None: torch's current one) and is not waited for."""

    def __init__(self, kernel, views, scalars, results, prepare):
        self._kernel, self._views, self._scalars, self.results = kernel, views, scalars, results
        self._args, self._gpu = (_Arg * len(views))(), None
        for n, view in enumerate(views):
            if view:
                self._args[n].tensor = view.address
                if self._gpu is None:
                    self._gpu = view.gpu
            else:
                self._args[n].scalar = ctypes.addressof(scalars[n])
        need, self._n = c_size_t(), len(views)
        if prepare:
            _check(_lib.texo_kernel_prepare(kernel._handle, self._args, self._n))
        _check(_lib.texo_kernel_workspace(kernel._handle, self._args, self._n, byref(need)))
        self._room, self._workspace = _workspace(need.value, self._gpu) if need.value else (None, None)
        self._call = _lib.texo_kernel_launch

    def __call__(self, stream=None):
        if stream is None and self._gpu is not None and "torch" in sys.modules:
            stream = sys.modules["torch"].cuda.current_stream(self._gpu).cuda_stream
        code = self._call(self._kernel._handle, self._args, self._n, self._workspace, stream)
        if code:
            raise Error(code)

    def check(self):
        """Raises when an access of the kernel's last launch failed. On a GPU it waits for all that was launched there;
        on the processor a launch has said so itself."""
        if self._gpu is not None and "torch" in sys.modules:
            sys.modules["torch"].cuda.synchronize(self._gpu)
        fault = _Fault(struct_size=ctypes.sizeof(_Fault))
        _check(_lib.texo_kernel_status(self._kernel._handle, byref(fault)))
        if fault.failed:
            raise Error(_FAULT, f"FAULT: {fault.line}:{fault.col}: the access {fault.access.decode()} went outside")


class Kernel:
    """A graph that can be called. `signature` is its parameters, results and dims."""

    def __init__(self, module, handle):
        self._module, self._handle = module, handle
        text = c_char_p()
        _check(_lib.texo_kernel_get_signature(handle, byref(text)))
        self.signature = json.loads(text.value)
        self._params = [(p["name"], p["dtype"], p["kind"], len(p.get("shape", ())),
                         [(n, axis) for n, axis in enumerate(p.get("shape", ())) if isinstance(axis, str)])
                        for p in self.signature["params"]]
        # the axes that dims are solved from: each with its parameter, its text, its value over the dims, and their names
        self._compound = [(p[0], axis, _extent(axis), [d for d in self.signature["dims"] if re.search(rf"\b{d}\b", axis)])
                          for p in self._params for _, axis in p[4] if not axis.isidentifier()]
        self._made = [(r["name"], r["dtype"], [(axis, _extent(axis)) for axis in r["shape"]]) for r in self.signature["results"]]

    @property
    def name(self):
        return self.signature["graph"]

    def _inputs(self, values):
        if len(values) != len(self._params):
            names = ", ".join(p[0] for p in self._params)
            raise TypeError(f"{self.name} takes {len(self._params)} inputs ({names}), not {len(values)}")
        views, scalars, dims = [], [], {}
        for (name, dtype, kind, rank, axes), value in zip(self._params, values):
            if kind == "scalar":
                if getattr(value, "size", 2) == 1 or hasattr(value, "numel"):
                    value = value.item()
                views.append(None)
                scalars.append(ctypes.create_string_buffer(_scalar(value, dtype, name), 16))
                dims[name] = value
                continue
            view = _view(value, name, dtype, kind == "inout")
            views.append(view)
            scalars.append(None)
            shape = view.shape
            if len(shape) != rank:
                raise TypeError(f"{name} has rank {rank}, and the array {len(shape)}")
            for n, axis in axes:
                dims.setdefault(axis, shape[n])
        self._solve(dims)
        return views, scalars, dims

    def _solve(self, dims):
        """Adds the dims that no axis has alone, from those that are linear in one of them."""
        for name, axis, extent, names in self._compound:
            unknown = [d for d in names if d not in dims]
            if extent is None or len(unknown) != 1:
                continue
            zero, one = (extent({**dims, unknown[0]: value}) for value in (0, 1))
            if one == zero:
                continue
            value, rest = divmod(dims[axis] - zero, one - zero)
            if rest or value < 0:
                raise ValueError(f"{name}: an axis of {axis} elements can't have {dims[axis]}")
            dims[unknown[0]] = value

    def _shape(self, name, axes, dims):
        shape = []
        for axis, extent in axes:
            if extent is None:
                raise ValueError(f"{name}: the extent {axis} can't be computed here; give out=")
            try:
                shape.append(extent(dims))
            except (KeyError, NameError, ArithmeticError, TypeError):
                raise ValueError(f"{name}: the extent {axis} does not follow from the shapes; give out=") from None
        return shape

    def _results(self, values, dims, out):
        if out is not None:
            out = tuple(out) if isinstance(out, (tuple, list)) else (out,)
            if len(out) != len(self._made):
                raise TypeError(f"{self.name} has {len(self._made)} results, not {len(out)}")
            return out
        torch = sys.modules.get("torch")
        is_torch = torch is not None and any(isinstance(v, torch.Tensor) for v in values)
        device = next((v.device for v in values if is_torch and isinstance(v, torch.Tensor)), None)
        made = []
        names = _TORCH if is_torch else _NUMPY
        for name, dtype, axes in self._made:
            shape = self._shape(name, axes, dims)
            if dtype not in names:
                raise TypeError(f"{name}: neither NumPy nor torch has dtype {dtype}; give out=")
            if is_torch:
                made.append(torch.empty(shape, dtype=getattr(torch, names[dtype]), device=device))
            else:
                import numpy
                made.append(numpy.empty(shape, dtype=names[dtype]))
        return tuple(made)

    def _launch(self, inputs, out, prepare):
        views, scalars, dims = self._inputs(inputs)
        results = self._results(inputs, dims, out)
        for (name, dtype, _), array in zip(self._made, results):
            views.append(_view(array, name, dtype, True))
            scalars.append(None)
        return Launch(self, views, scalars, results, prepare)

    def bind(self, *inputs, out=None):
        """Checks arguments once and gives a Launch. The arrays must stay as they are while it is used."""
        return self._launch(inputs, out, True)

    def __call__(self, *inputs, out=None):
        """Runs the graph: its result, or a tuple of several; None when it writes inouts alone."""
        launch = self._launch(inputs, out, False)
        launch()
        if len(launch.results) == 1:
            return launch.results[0]
        return launch.results or None


_default = None


def _context():
    global _default
    if _default is None:
        _default = Context()
    return _default


def compile(source, name=None, **options):
    """Context.compile() in a context of the module's own."""
    return _context().compile(source, name, **options)


def compile_file(path, **options):
    """Context.compile_file() in a context of the module's own."""
    return _context().compile_file(path, **options)
