# SBCL: its heap at the address it asks for, collections, threads and signals, code that writes code, a saved image.
# seconds: 180
sb() { sbcl --noinform --no-sysinit --no-userinit --non-interactive "$@" 2>&1; }
sb --eval '(progn (print (loop for i below 1000000 sum i)) (gc :full t) (print (length (loop for i below 3000000 collect i))) (gc :full t) (terpri))'
sb --eval '(let* ((lock (sb-thread:make-mutex)) (sum 0) (all (loop for n below 4 collect (let ((n n)) (sb-thread:make-thread (lambda () (dotimes (i 20000) (make-array 100) (sb-thread:with-mutex (lock) (incf sum n)))))))))
  (mapc (function sb-thread:join-thread) all) (format t "~a~%" sum))'
sb --eval '(progn (defun f (x) (if (< x 2) x (+ (f (- x 1)) (f (- x 2))))) (compile (quote f)) (format t "~a~%" (f 24)))'
sb --eval '(handler-case (sb-ext:with-timeout 0.2 (loop)) (sb-ext:timeout () (format t "timeout~%")))'
sb --eval '(handler-case (labels ((deep (n) (+ 1 (deep (+ n 1))))) (deep 0)) (storage-condition () (format t "stack exhausted~%")))' | tail -n 1
sb --eval '(handler-case (sb-sys:with-pinned-objects () (setf (sb-sys:sap-ref-8 (sb-sys:int-sap 4096) 0) 1)) (error (e) (format t "~a~%" (type-of e))))' | tail -n 1
sb --eval '(handler-case (/ 1 (- (length sb-ext:*posix-argv*) (length sb-ext:*posix-argv*))) (division-by-zero () (format t "division by zero~%")))'
sb --eval '(format t "~a" (with-output-to-string (s) (sb-ext:run-program "/bin/echo" (list "from" "echo") :output s)))'
sb --eval '(defvar *kept* 42)' --eval '(sb-ext:save-lisp-and-die "image" :executable t :toplevel (lambda () (format t "kept ~a~%" *kept*) (sb-ext:exit :code 7)))' > /dev/null
./image; echo "exit $?"
sb --eval '(sb-ext:exit :code 3 :abort t)'; echo "exit $?"
