"""Kernels to object code of any tier, this machine's or not.

numba types a kernel and gives its LLVM IR, unoptimized; all kernels of a family go into one module in which
only their entry points are external; LLVM inlines and optimizes it for the tier.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba import types
from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from reflexarc.inference.build.elf import BuildError
from reflexarc.inference.isa import Tier

Kernel = Callable[..., None]

_TRAP = "llvm.trap"
_INLINE_ALWAYS = 1_000_000  # LLVM's cost above which a call stays a call: never


class Compiled(NamedTuple):
    """An ELF object, and its assembly where it was asked for."""

    object: bytes
    assembly: str


def _typed_ir(kernel: Kernel) -> tuple[str, str]:
    """LLVM IR of a kernel of int64 parameters, and its symbol there."""
    context = cpu_target.target_context.with_aot_codegen(kernel.__name__, cpu_name="")
    context.refresh()
    cpu_target.typing_context.refresh()
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"  # no ZeroDivisionError
    library = context.codegen().create_library(kernel.__name__)
    arguments = (types.int64,) * len(inspect.signature(kernel).parameters)
    with global_compiler_lock:
        result = compiler.compile_extra(
            cpu_target.typing_context, context, kernel, arguments, types.void, flags, {}, library=library
        )
        library.finalize()
    return library.get_llvm_str(), result.fndesc.llvm_func_name


def _entry_point(kernel: Kernel, symbol: str) -> str:
    """IR of `void NAME(int64, ...)` around numba's function, which returns a status, not 0 for an exception.

    "no-builtins" keeps LLVM from turning loops into calls of memset and memcpy.
    """
    count = len(inspect.signature(kernel).parameters)
    parameters = ", ".join(f"i64 %a{i}" for i in range(count))
    return f"""
declare void @{_TRAP}()
declare i32 @"{symbol}"(ptr, ptr, {", ".join(["i64"] * count)})
define void @"{kernel.__name__}"({parameters}) nounwind "no-builtins" align 64 {{
  %result = alloca ptr
  %exception = alloca ptr
  %status = call i32 @"{symbol}"(ptr %result, ptr %exception, {parameters})
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %end, label %raised
raised:
  call void @{_TRAP}()
  unreachable
end:
  ret void
}}
"""


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(tier: Tier) -> Any:
    _initialize()
    target = llvm.Target.from_triple(tier.triple)
    return target.create_target_machine(
        cpu=tier.cpu, features=tier.features, opt=3, reloc="pic", codemodel="small"
    )


def compile_kernels(kernels: Sequence[Kernel], tier: Tier, assembly: bool = False) -> Compiled:
    """Object code with one entry point a kernel, named as the kernel is."""
    machine = _machine(tier)
    head = f'target triple = "{tier.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(head)
    for kernel in kernels:
        ir, symbol = _typed_ir(kernel)
        module.link_in(llvm.parse_assembly(head + re.sub(r"^target .*$", "", ir, flags=re.M)))
        module.link_in(llvm.parse_assembly(head + _entry_point(kernel, symbol)))
    entries = {kernel.__name__ for kernel in kernels}
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in entries:
            value.linkage = "internal"
    _optimize(module, machine)
    for function in module.functions:
        if _TRAP in str(function) and not function.is_declaration:
            raise BuildError(f"kernel {function.name} can raise an exception, which nothing would catch")
    return Compiled(machine.emit_object(module), machine.emit_assembly(module) if assembly else "")


def _optimize(module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.inlining_threshold = _INLINE_ALWAYS
    options.loop_vectorization = options.slp_vectorization = False  # kernels say what is a vector
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        module, llvm.create_pass_builder(machine, options)
    )
    module.verify()
