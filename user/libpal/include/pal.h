/* The Platform Adaptation Layer of Graphene, as of 2014 (DkSegmentRegister as of 2015). docs/pal.md lists what Janua has of it.
 *
 * A call that fails returns NULL, 0 or false; the handler of the event PAL_EVENT_FAILURE gets the error, if there is one, and
 * pal_errno() returns it. */
#ifndef PAL_H
#define PAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t PAL_NUM;
typedef const char *PAL_STR;
typedef void *PAL_PTR;
typedef uint32_t PAL_FLG;
typedef uint32_t PAL_IDX;
typedef bool PAL_BOL;

/* Handles. What a handle holds beyond its type is the library's. */
enum {
    pal_type_file = 1,
    pal_type_pipe,
    pal_type_pipesrv,
    pal_type_pipecli,
    pal_type_pipeprv,
    pal_type_dev,
    pal_type_dir,
    pal_type_tcp,
    pal_type_tcpsrv,
    pal_type_udp,
    pal_type_udpsrv,
    pal_type_process,
    pal_type_mcast,
    pal_type_thread,
    pal_type_semaphore,
    pal_type_event,
    pal_type_gipc,
};

struct pal_thread;

typedef union pal_handle {
    struct { PAL_IDX type, number; } hdr;
    struct { PAL_IDX type, number; } file;
    struct { PAL_IDX type, number; } dir;
    struct { PAL_IDX type, number; } dev;
    struct { PAL_IDX type, number; } pipe;
    struct { PAL_IDX type, number; } sock;
    struct { PAL_IDX type, number; } process;
    struct { PAL_IDX type, number; } semaphore;
    struct { PAL_IDX type, number; } event;
    struct { PAL_IDX type, number; } gipc;
    struct { PAL_IDX type, number; struct pal_thread *thread; } thread;
    PAL_NUM words[8];
} *PAL_HANDLE;

#define PAL_GET_TYPE(handle) ((handle)->hdr.type)

/* Errors. */
enum {
    PAL_ERROR_NOTIMPLEMENTED = 1,
    PAL_ERROR_NOTDEFINED,
    PAL_ERROR_NOTSUPPORT,
    PAL_ERROR_INVAL,
    PAL_ERROR_TOOLONG,
    PAL_ERROR_DENIED,
    PAL_ERROR_BADHANDLE,
    PAL_ERROR_STREAMEXIST,
    PAL_ERROR_STREAMNOTEXIST,
    PAL_ERROR_STREAMISFILE,
    PAL_ERROR_STREAMISDIR,
    PAL_ERROR_STREAMISDEVICE,
    PAL_ERROR_INTERRUPTED,
    PAL_ERROR_OVERFLOW,
    PAL_ERROR_BADADDR,
    PAL_ERROR_NOMEM,
    PAL_ERROR_NOTKILLABLE,
    PAL_ERROR_INCONSIST,
    PAL_ERROR_TRYAGAIN,
    PAL_ERROR_ENDOFSTREAM,
    PAL_ERROR_NOTSERVER,
    PAL_ERROR_NOTCONNECTION,
    PAL_ERROR_ZEROSIZE,
    PAL_ERROR_CONNFAILED,
    PAL_ERROR_ADDRNOTEXIST,
};

/* What the library knows of where it runs. */
typedef struct {
    PAL_NUM cpu_num;
    PAL_STR cpu_vendor, cpu_brand;
    PAL_NUM cpu_family, cpu_model, cpu_stepping;
} PAL_CPU_INFO;

typedef struct {
    PAL_HANDLE manifest_handle;
    PAL_STR executable;
    PAL_PTR executable_begin, executable_end;
    PAL_PTR library_begin, library_end;
    PAL_NUM pagesize, alloc_align;
    /* NULL in the first picoprocess. */
    PAL_HANDLE parent_process;
    PAL_HANDLE first_thread;
    PAL_HANDLE debug_stream;
    /* NULL: there is none. */
    PAL_HANDLE broadcast_stream;
    /* Since 2015. */
    PAL_NUM process_id, host_id;
    PAL_PTR user_address_start, user_address_end;
    PAL_CPU_INFO cpu_info;
    PAL_NUM mem_total;
} PAL_CONTROL;

PAL_CONTROL *pal_control_addr(void);
#define pal_control (*pal_control_addr())

/* Memory. */
#define PAL_ALLOC_32BIT 1
#define PAL_ALLOC_RESERVE 2
#define PAL_PROT_NONE 0
#define PAL_PROT_READ 1
#define PAL_PROT_WRITE 2
#define PAL_PROT_EXEC 4
#define PAL_PROT_WRITECOPY 8

PAL_PTR DkVirtualMemoryAlloc(PAL_PTR addr, PAL_NUM size, PAL_FLG alloc_type, PAL_FLG prot);
void DkVirtualMemoryFree(PAL_PTR addr, PAL_NUM size);
PAL_BOL DkVirtualMemoryProtect(PAL_PTR addr, PAL_NUM size, PAL_FLG prot);

/* Threads, events, semaphores. */
#define PAL_THREAD_SAME_PARENT 0x8000
#define PAL_THREAD_DETACHED 0x400000
#define PAL_THREAD_STOPPED 0x2000000
#define NO_TIMEOUT ((PAL_NUM)-1)

PAL_HANDLE DkThreadCreate(PAL_PTR start, PAL_PTR param, PAL_FLG flags);
PAL_NUM DkThreadDelayExecution(PAL_NUM microseconds);
void DkThreadYieldExecution(void);
__attribute__((noreturn)) void DkThreadExit(void);
PAL_BOL DkThreadResume(PAL_HANDLE thread);
/* `initial` units of `max` are taken. */
PAL_HANDLE DkSemaphoreCreate(PAL_NUM initial, PAL_NUM max);
void DkSemaphoreRelease(PAL_HANDLE semaphore, PAL_NUM count);
PAL_HANDLE DkNotificationEventCreate(PAL_BOL initial);
PAL_HANDLE DkSynchronizationEventCreate(PAL_BOL initial);
void DkEventSet(PAL_HANDLE event);
void DkEventClear(PAL_HANDLE event);
PAL_HANDLE DkObjectsWaitAny(PAL_NUM count, PAL_HANDLE *handles, PAL_NUM microseconds);

/* Streams. */
#define PAL_ACCESS_RDONLY 0
#define PAL_ACCESS_WRONLY 1
#define PAL_ACCESS_RDWR 2
#define PAL_CREAT_TRY 0100
#define PAL_CREAT_ALWAYS 0200
#define PAL_OPTION_NONBLOCK 04000
#define PAL_DELETE_RD 1
#define PAL_DELETE_WR 2

typedef struct {
    PAL_IDX handle_type;
    PAL_NUM file_id, size, access_time, change_time, create_time;
    PAL_BOL disconnected, readable, writeable, runnable;
    PAL_FLG share_flags;
    PAL_BOL nonblocking, reuseaddr;
    PAL_NUM linger, receivebuf, sendbuf, receivetimeout, sendtimeout;
    PAL_BOL tcp_cork, tcp_keepalive, tcp_nodelay;
} PAL_STREAM_ATTR;

PAL_HANDLE DkStreamOpen(PAL_STR uri, PAL_FLG access, PAL_FLG share_flags, PAL_FLG create, PAL_FLG options);
PAL_HANDLE DkStreamWaitForClient(PAL_HANDLE server);
PAL_NUM DkStreamRead(PAL_HANDLE stream, PAL_NUM offset, PAL_NUM count, PAL_PTR buffer, PAL_PTR source, PAL_NUM size);
PAL_NUM DkStreamWrite(PAL_HANDLE stream, PAL_NUM offset, PAL_NUM count, const void *buffer, PAL_STR dest);
void DkStreamDelete(PAL_HANDLE stream, PAL_FLG access);
PAL_PTR DkStreamMap(PAL_HANDLE stream, PAL_PTR address, PAL_FLG prot, PAL_NUM offset, PAL_NUM size);
void DkStreamUnmap(PAL_PTR addr, PAL_NUM size);
PAL_NUM DkStreamSetLength(PAL_HANDLE stream, PAL_NUM length);
PAL_BOL DkStreamFlush(PAL_HANDLE stream);
PAL_NUM DkStreamGetName(PAL_HANDLE stream, char *buffer, PAL_NUM size);
PAL_BOL DkStreamAttributesQuery(PAL_STR uri, PAL_STREAM_ATTR *attr);
PAL_BOL DkStreamAttributesQuerybyHandle(PAL_HANDLE stream, PAL_STREAM_ATTR *attr);

/* Processes. */
PAL_HANDLE DkProcessCreate(PAL_STR uri, PAL_FLG flags, PAL_STR *args);
__attribute__((noreturn)) void DkProcessExit(PAL_NUM code);
#define PAL_SANDBOX_PIPE 1
PAL_BOL DkProcessSandboxCreate(PAL_STR manifest, PAL_FLG flags);

/* Events. */
typedef struct {
    PAL_NUM r8, r9, r10, r11, r12, r13, r14, r15;
    PAL_NUM rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
    PAL_NUM efl, csgsfs, err, trapno, oldmask, cr2;
} PAL_CONTEXT;

#define PAL_EVENT_DIVZERO 1
#define PAL_EVENT_MEMFAULT 2
#define PAL_EVENT_ILLEGAL 3
#define PAL_EVENT_QUIT 4
#define PAL_EVENT_SUSPEND 5
#define PAL_EVENT_RESUME 6
#define PAL_EVENT_FAILURE 7
#define PAL_EVENT_PRIVATE 1
#define PAL_EVENT_RESET 2

typedef void (*PAL_UPCALL)(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context);

PAL_BOL DkSetExceptionHandler(PAL_UPCALL handler, PAL_NUM event, PAL_FLG flags);
void DkExceptionReturn(PAL_PTR event);

/* Handles passed on; pages. */
PAL_BOL DkSendHandle(PAL_HANDLE stream, PAL_HANDLE cargo);
PAL_HANDLE DkReceiveHandle(PAL_HANDLE stream);
PAL_BOL DkStreamChangeName(PAL_HANDLE stream, PAL_STR uri);
PAL_HANDLE DkCreatePhysicalMemoryChannel(PAL_NUM *key);
PAL_NUM DkPhysicalMemoryCommit(PAL_HANDLE channel, PAL_NUM entries, PAL_PTR *addrs, PAL_NUM *sizes, PAL_FLG flags);
PAL_NUM DkPhysicalMemoryMap(PAL_HANDLE channel, PAL_NUM entries, PAL_PTR *addrs, PAL_NUM *sizes, PAL_FLG *prots);

/* The rest. */
#define PAL_SEGMENT_FS 1
#define PAL_SEGMENT_GS 2

PAL_PTR DkSegmentRegister(PAL_FLG reg, PAL_PTR addr);
PAL_PTR DkThreadPrivate(PAL_PTR addr);
PAL_NUM DkSystemTimeQuery(void);
PAL_NUM DkRandomBitsRead(PAL_PTR buffer, PAL_NUM size);
PAL_BOL DkInstructionCacheFlush(PAL_PTR addr, PAL_NUM size);
void DkObjectClose(PAL_HANDLE object);

/* Besides the interface: the calling thread's last error, and text to the console (%s %c %d %u %x %p, with l). */
PAL_NUM pal_errno(void);
__attribute__((format(printf, 1, 2))) int pal_printf(PAL_STR format, ...);

#endif
