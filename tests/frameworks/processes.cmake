# Programs with several processes: each process that uses the GPU writes a file.
framework_test(torch_processes test_processes.py TIMEOUT 900)
