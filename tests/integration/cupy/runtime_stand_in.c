// Stand-ins for the runtime calls that CuPy's memory pool makes. They call the CUDA runtime that
// the process finds (that of the virtual GPU) in place of the one that is linked into CuPy's wheel,
// which does not start without NVIDIA's driver. Each has the parameters of the function of the same
// name in cupy_backends.cuda.api.runtime: CuPy's modules call each other with one more parameter.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// Of the interpreter that loads this library.
typedef struct _object PyObject;
extern PyObject* PyObject_CallFunction(PyObject* callable, const char* format, ...);
extern PyObject* Py_BuildValue(const char* format, ...);
extern void PyErr_SetObject(PyObject* type, PyObject* value);
extern void Py_DecRef(PyObject* object);
extern void Py_IncRef(PyObject* object);

static PyObject* error_class;  // CUDARuntimeError

static void* runtime_function(const char* name) {
    static void* runtime;
    if (runtime == NULL) {
        runtime = dlopen("libcudart.so.13", RTLD_NOW);
    }
    return runtime == NULL ? NULL : dlsym(runtime, name);
}

// Raises the exception that CuPy raises for this status. Returns 0 if there was no error.
static int raised(int status) {
    if (status == 0) {
        return 0;
    }
    PyObject* error = PyObject_CallFunction(error_class, "i", status);
    if (error != NULL) {
        PyErr_SetObject(error_class, error);
        Py_DecRef(error);
    }
    return 1;
}

static PyObject* none_or_error(int status) {
    return raised(status) ? NULL : Py_BuildValue("");
}

typedef int (*TakesPointer)(void* argument);
typedef int (*TakesPointerAndSize)(void* argument, size_t size);
typedef int (*TakesInt)(int argument);
typedef int (*TakesTwoSizes)(size_t* first, size_t* second);

#define CALL(type, name, ...)                                                \
    (runtime_function(#name) == NULL ? 35                                    \
                                     : ((union {                             \
                                           void* found;                      \
                                           type call;                        \
                                       }){.found = runtime_function(#name)}) \
                                           .call(__VA_ARGS__))

void stand_in_begin(PyObject* runtime_error) {
    Py_IncRef(runtime_error);
    error_class = runtime_error;
}

int stand_in_getDevice(int skip) {
    int device = -1;
    (void)skip;
    return raised(CALL(TakesPointer, cudaGetDevice, &device)) ? -1 : device;
}

int stand_in_getDeviceCount(int skip) {
    int count = -1;
    (void)skip;
    return raised(CALL(TakesPointer, cudaGetDeviceCount, &count)) ? -1 : count;
}

PyObject* stand_in_setDevice(int device, int skip) {
    (void)skip;
    return none_or_error(CALL(TakesInt, cudaSetDevice, device));
}

intptr_t stand_in_malloc(size_t bytes, int skip) {
    void* address = NULL;
    (void)skip;
    return raised(CALL(TakesPointerAndSize, cudaMalloc, &address, bytes)) ? 0 : (intptr_t)address;
}

PyObject* stand_in_free(intptr_t address, int skip) {
    (void)skip;
    return none_or_error(CALL(TakesPointer, cudaFree, (void*)address));
}

PyObject* stand_in_memGetInfo(int skip) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    (void)skip;
    return raised(CALL(TakesTwoSizes, cudaMemGetInfo, &free_bytes, &total_bytes))
               ? NULL
               : Py_BuildValue(
                     "(KK)", (unsigned long long)free_bytes, (unsigned long long)total_bytes);
}

intptr_t stand_in_streamCreate(int skip) {
    void* stream = NULL;
    (void)skip;
    return raised(CALL(TakesPointer, cudaStreamCreate, &stream)) ? 0 : (intptr_t)stream;
}

intptr_t stand_in_streamCreateWithPriority(unsigned flags, int priority, int skip) {
    (void)flags;
    (void)priority;
    return stand_in_streamCreate(skip);
}

PyObject* stand_in_streamDestroy(intptr_t stream, int skip) {
    (void)skip;
    return none_or_error(CALL(TakesPointer, cudaStreamDestroy, (void*)stream));
}
