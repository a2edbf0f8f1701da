# Programs of several processes: each that uses the GPU has a file of its own.
framework_test(torch_processes test_processes.py TIMEOUT 900)
