/** \file texo.h
 * Compile tensor expressions in memory: from the text of a `.tex` program to kernels that can be launched.
 *
 * A context (#texo_ctx) holds what compilations share: the allocator, the log, the memory cache, the
 * threads of launches. A module (#texo_module) is one compiled program: its diagnostics, its kernels
 * (one for each graph), its intermediate forms as text. Kernels are launched with the functions of
 * texo_rt.h.
 *
 * Rules that hold for every function here:
 *  - It returns a #texo_status unless it says otherwise, and texo_last_error() has the text of the calling
 *    thread's last failure; the text names the argument that is wrong.
 *  - `create` and `compile` give ownership to the caller, who ends it with the `destroy` of that kind;
 *    `get` and `emit` lend: what they return lives as long as the module it came from.
 *  - Destroying NULL is fine. A module keeps its context alive, so that they can be destroyed in any order.
 *  - On failure every result is NULL (or 0), except where a function says that a module comes back.
 *  - Nothing prints, exits, aborts, installs a signal handler, reads the environment, or changes the locale
 *    or the floating-point state of the caller. There is one exception that is not ours: LLVM, which the
 *    code generator is built on, ends the process when it runs out of memory itself. Every allocation
 *    that texo makes goes through the context's allocator and fails with #TEXO_NO_MEMORY.
 *  - Contexts are independent of each other. All functions on one context, and on modules of one context,
 *    may be called from any threads at the same time, except that nothing may use an object while another
 *    thread destroys it.
 */
#ifndef TEXO_H
#define TEXO_H

#include "texo_rt.h"

/** The version of this interface; within a version there are only additions. */
#define TEXO_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/** What compilations share. */
typedef struct texo_ctx texo_ctx;
/** One compiled program. */
typedef struct texo_module texo_module;

/** How much a line of the log matters. */
typedef enum texo_log_level {
	TEXO_LOG_WARNING = 1, /**< something that the program's author would want to mend */
	TEXO_LOG_NOTE = 2,    /**< what passes remarked (#TEXO_REMARKS) */
	TEXO_LOG_DETAIL = 3   /**< what was compiled, and whether the cache had it */
} texo_log_level;

/** Where code generation runs. */
typedef enum texo_isolation {
	TEXO_IN_PROCESS = 0, /**< in the calling thread: fast */
	/** In a process of its own, one for each compilation that the cache does not have, and for CUDA one for each
	 * kernel that is prepared or launched first: it can open no file, start
	 * no process, run no code that it makes, and has 1 GiB and texo_ctx_options::worker_seconds. When LLVM
	 * fails, it fails there. The process is a child of this one: SIGCHLD is sent when it ends. */
	TEXO_WORKER = 1
} texo_isolation;

/** A value for texo_ctx_options::cache_bytes: keep nothing. */
#define TEXO_CACHE_OFF ((size_t)-1)

/** How texo_ctx_create() makes a context. Zero is the default of every field; begin with
 * TEXO_INIT(texo_ctx_options). */
typedef struct texo_ctx_options {
	uint32_t struct_size; /**< sizeof(texo_ctx_options) */
	uint32_t threads;     /**< of a launch; 0: one per processor that the process may use; at most 1024 */
	/** The allocator: alloc, resize and release as malloc, realloc and free, memory aligned to 16 bytes. All
	 * three, or none (then it is the C library's). They must be safe to call from every thread that uses the
	 * context, and must not call texo. release is never given NULL. */
	void *(*alloc)(void *user, size_t n);
	void *(*resize)(void *user, void *p, size_t n); /**< see alloc */
	void (*release)(void *user, void *p);           /**< see alloc */
	void *user;                                     /**< handed to the three */
	/** Gets a line of text (without newline, valid during the call) in the thread that compiles, or prepares or launches
	 * what it then generates code of: the calling one, or, where that has less than 4 MiB of stack left, one that is started for the time of the call. It must not
	 * call texo. NULL: no log. */
	void (*log)(void *log_user, texo_log_level level, const char *text);
	void *log_user;       /**< handed to log */
	size_t cache_bytes;   /**< bytes of compiled code that the memory cache keeps; 0: 64 MiB; #TEXO_CACHE_OFF */
	size_t compile_bytes; /**< most memory that one compilation, or one kernel's code generation, may take, then #TEXO_LIMIT; 0: 2 GiB */
	uint32_t isolation;   /**< a #texo_isolation */
	uint32_t reserved;    /**< must be 0 */
	/** As texo_rt_options::parallel_for. */
	void (*parallel_for)(void *parallel_user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg);
	void *parallel_user;  /**< handed to parallel_for */
	/** For #TEXO_WORKER: path of the `texo` command; NULL: the one that was installed with this shared library. */
	const char *worker;
	/** For #TEXO_WORKER: how long a compilation may take; 0: 10. Then, and where it needs more memory, the status is
	 * #TEXO_LIMIT. */
	uint32_t worker_seconds;
	/** "cuda" or "cuda:N": what a program is compiled for whose target is NULL, and where kernels for CUDA run. NULL:
	 * the processor, and kernels for CUDA run on "cuda", which is looked for when the first is compiled. */
	const char *device;
	void *context; /**< as texo_rt_options::context, with a device */
	/** A folder where compiled code outlives the process: what is there needs no code generation. It may be the
	 * command's, and any number of processes may use it. It is made if it isn't there; one that is another user's,
	 * or that others may write to, is not used. What is wrong with it is said to the log. NULL: none. */
	const char *cache;
	uint64_t cache_limit; /**< bytes in it, before what was not used for longest is dropped; 0: 1 GiB */
} texo_ctx_options;

/** Bits of texo_options::flags. */
enum {
	TEXO_NO_CACHE = 1u << 0, /**< compile even if a cache has it, and do not keep it */
	TEXO_WERROR = 1u << 1,   /**< warnings are errors */
	TEXO_NO_FILES = 1u << 2, /**< the program may use "std" but no file */
	TEXO_VERIFY = 1u << 3,   /**< verify after every pass: slower, for finding bugs of texo */
	TEXO_REMARKS = 1u << 4   /**< passes say to the log what they did and refused */
};

/** How one program is compiled. Zero is the default of every field; begin with TEXO_INIT(texo_options). */
typedef struct texo_options {
	uint32_t struct_size; /**< sizeof(texo_options) */
	/** "cpu": this processor; "cpu:NAME": an older one, such as "cpu:x86-64-v3"; "cuda": the context's GPU, or where
	 * there is none "cuda:sm_90a"; "cuda:NAME": another; NULL: where the context's kernels run. */
	const char *target;
	const char *fp;       /**< NULL or "relaxed"; "strict"; "fast" */
	const char *fuse;     /**< NULL or "all"; "elementwise"; "off" */
	const char *const *statics; /**< dims whose value is compiled in: "N=4096" */
	size_t nstatics;            /**< how many */
	uint32_t flags;             /**< #TEXO_NO_CACHE and the others */
} texo_options;

/** How bad a diagnostic is. */
typedef enum texo_severity {
	TEXO_SEVERITY_ERROR = 0,   /**< there are no kernels */
	TEXO_SEVERITY_WARNING = 1, /**< legal and suspect */
	TEXO_SEVERITY_REMARK = 2   /**< for information */
} texo_severity;

/** One finding about the program. All texts are never NULL, and live as long as the module. */
typedef struct texo_diagnostic {
	uint32_t struct_size; /**< sizeof(texo_diagnostic), set by the caller: TEXO_INIT(texo_diagnostic) */
	uint32_t severity;    /**< a #texo_severity */
	const char *code;     /**< such as "E0207"; `texo explain E0207` has a page about it */
	const char *file;     /**< name or path; "" when it is about no place */
	uint32_t line;        /**< from 1; 0 when it is about no place */
	uint32_t column;      /**< from 1, in code points */
	uint32_t end_line;    /**< line of the last character */
	uint32_t end_column;  /**< one past the last character */
	const char *message;  /**< what is wrong, in one line */
	const char *help;     /**< what to do about it, or "" */
	const char *rendered; /**< all of it for a terminal without colours: the line, carets, notes, help */
} texo_diagnostic;

/** The #TEXO_API_VERSION of the library that is linked. Any thread. */
TEXO_API uint32_t texo_api_version(void);
/** The version of the library that is linked, such as "0.1.0". Any thread. */
TEXO_API const char *texo_version(void);

/** Makes a context. Any thread.
 * \param options NULL for the defaults
 * \param out     the context; the caller destroys it
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_NO_MEMORY */
TEXO_API texo_status texo_ctx_create(const texo_ctx_options *options, texo_ctx **out);

/** Gives the caller's hold on the context up. Its memory goes when its last module does. */
TEXO_API void texo_ctx_destroy(texo_ctx *ctx);

/** Compiles a program. Its graphs become kernels of the module. For CUDA a graph has code for several ranges of sizes
 * and alignments, which is generated when texo_kernel_prepare() or a launch first needs it; all that is wrong with the
 * program, or that the target lacks, is said here. The same text with the same options comes
 * from the context's memory cache: such modules share their kernels (a program that uses files other than
 * "std" is always compiled). Any thread; compilations of one context run side by side.
 * \param ctx     the context
 * \param src     the text, UTF-8; need not end in NUL; not used after the call
 * \param len     its bytes, at most 2 MiB
 * \param name    what diagnostics call it, and what the paths of used files are relative to; NULL: "<string>"
 * \param options NULL for the defaults
 * \param out     the module; the caller destroys it
 * \return #TEXO_OK; #TEXO_COMPILE_ERROR when the program is wrong: `out` is then a module without kernels, and
 *         its diagnostics say why; #TEXO_INVALID for a wrong argument or option; #TEXO_NO_MEMORY; #TEXO_LIMIT;
 *         #TEXO_NOT_BUILT for a target, or an operation on it, that texo can't generate code for yet;
 *         #TEXO_INTERNAL for a bug of texo, or a worker that ended early; #TEXO_NO_DEVICE when a worker can't be
 *         started or confined */
TEXO_API texo_status texo_compile_string(texo_ctx *ctx, const char *src, size_t len, const char *name,
                                         const texo_options *options, texo_module **out);

/** The same for the text of a file, whose path is its name.
 * \param ctx     the context
 * \param path    of the file
 * \param options NULL for the defaults
 * \param out     the module; the caller destroys it
 * \return as texo_compile_string(), and #TEXO_IO when the file can't be read */
TEXO_API texo_status texo_compile_file(texo_ctx *ctx, const char *path, const texo_options *options,
                                       texo_module **out);

/** Frees a module, its diagnostics, texts and kernels. No kernel of it may be running. */
TEXO_API void texo_module_destroy(texo_module *module);

/** How many diagnostics the module has: errors, warnings and remarks, in the order of the text; 0 for NULL.
 * Any thread. */
TEXO_API size_t texo_module_diagnostic_count(const texo_module *module);

/** A diagnostic. Any thread.
 * \param module the module
 * \param i      less than texo_module_diagnostic_count()
 * \param out    filled; its struct_size must be set
 * \return #TEXO_OK or #TEXO_INVALID */
TEXO_API texo_status texo_module_get_diagnostic(const texo_module *module, size_t i, texo_diagnostic *out);

/** A form of the program on its way to machine code. It is made when it is asked for the first time, by compiling
 * the kept text again, and kept by the module. Any thread.
 * \param module the module; one in error has "tokens" and "ast"
 * \param kind   "tokens", "ast", "tg" (the tensor graphs), "dot" (the same for Graphviz), "plan", "tir", "llvm", "asm",
 *               "ptx" (for CUDA), "image" (the artefact, which texo_rt_load() takes), or "obj", "header", "manifest" (what `texo build` writes,
 *               for libtexo-rt)
 * \param bytes  the form, lent by the module; a NUL follows it
 * \param n      its bytes
 * \return #TEXO_OK; #TEXO_INVALID for no kind; #TEXO_COMPILE_ERROR when the program has errors; and as
 *         texo_compile_string() */
TEXO_API texo_status texo_module_emit(const texo_module *module, const char *kind, const void **bytes, size_t *n);

/** A graph of the module, to be launched with texo_kernel_launch(). A kernel runs one launch at a time;
 * modules that came from the memory cache share it, so that texo_kernel_status() speaks of the last launch by
 * any of them. Any thread.
 * \param module the module
 * \param graph  its name; NULL: the only one, else the last
 * \param out    the kernel, lent by the module
 * \return #TEXO_OK, #TEXO_INVALID, #TEXO_NOT_FOUND, or #TEXO_COMPILE_ERROR for a module without kernels;
 *         #TEXO_NO_DEVICE or #TEXO_BAD_ARTEFACT for a module for CUDA, which has forms also where there is no GPU, or
 *         another one */
TEXO_API texo_status texo_module_get_kernel(const texo_module *module, const char *graph, texo_kernel **out);

#ifdef __cplusplus
}
#endif

#endif
