"""What the scripts begin with that hold texo against torch on an NVIDIA GPU: where texo.py lies, in the tree or in a bundle,
their options, and whether there is a torch that has the device."""
import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE.parent / "python", *HERE.parent.glob("lib/python*")) if p.exists()]


def need(device):
    """Ends the script with 77 where torch isn't there, or has no GPU for the device cuda."""
    try:
        import torch
        if device == "cuda" and not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)


def options(text, **more):
    """What was asked for by [TEXO], --device, --only and more: each a default, or False of a switch. text is of --help."""
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("texo", nargs="?")
    for name, default in {"device": "cuda", "only": "", **more}.items():
        if default is False:
            p.add_argument(f"--{name}", action="store_true")
        else:
            p.add_argument(f"--{name}", type=type(default) if default is not None else str, default=default)
    args = p.parse_args()
    need(args.device)
    return args


class Backwards:
    """A tensor as DLPack has it whose elements along an axis lie in memory the other way round, for which torch has no strides."""

    def __init__(self, tensor, axis):
        self.held, self.axis, self.is_cuda = tensor.flip(axis).contiguous(), axis, tensor.is_cuda

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()

    def __dlpack__(self, **options):
        import texo
        capsule = self.held.__dlpack__(**options)
        for name, struct in ((b"dltensor_versioned", texo._ManagedVersioned), (b"dltensor", texo._Managed)):
            if texo._capsule_valid(capsule, name):
                t = struct.from_address(texo._capsule_pointer(capsule, name)).dl_tensor
                t.byte_offset += (self.held.shape[self.axis] - 1) * t.strides[self.axis] * self.held.element_size()
                t.strides[self.axis] *= -1
        return capsule
